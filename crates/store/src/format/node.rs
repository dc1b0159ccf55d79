//! A node of a table tree: one page of sorted 24-byte slots.

use super::{PAGE, checksum};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// First bytes of a node.
pub const MAGIC: u32 = u32::from_le_bytes(*b"NODE");

/// Slots in a node.
pub const CAPACITY: usize = (PAGE as usize - 64) / 24;

/// A key and its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Slot {
    pub high: U64,
    pub low: U64,
    pub value: U64,
}

impl Slot {
    /// The key in the tree's order.
    #[must_use]
    pub fn key(&self) -> (u64, u64) {
        (self.high.get(), self.low.get())
    }

    /// A slot with this key and value.
    #[must_use]
    pub fn new(key: (u64, u64), value: u64) -> Self {
        Slot { high: U64::new(key.0), low: U64::new(key.1), value: U64::new(value) }
    }
}

/// One page.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Node {
    pub magic: U32,
    pub level: U16,
    pub count: U16,
    pub checksum: U64,
    pub own_offset: U64,
    pub reserved: [u8; 40],
    pub slots: [Slot; CAPACITY],
}

const _: () = assert!(size_of::<Node>() as u64 == PAGE);

impl Node {
    /// An empty node.
    #[must_use]
    pub fn empty(level: u16, offset: u64) -> Self {
        Node {
            magic: U32::new(MAGIC),
            level: U16::new(level),
            count: U16::new(0),
            checksum: U64::new(0),
            own_offset: U64::new(offset),
            reserved: [0; 40],
            slots: [Slot::default(); CAPACITY],
        }
    }

    /// Fills in the checksum.
    pub fn seal(&mut self, seed: u64) {
        self.checksum = U64::new(0);
        self.checksum = U64::new(checksum(seed, &[self.as_bytes()]));
    }

    /// Whether the node is intact, lies where it says, and its keys ascend.
    #[must_use]
    pub fn verify(&self, seed: u64, offset: u64, level: u16) -> bool {
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        let sum = checksum(seed, &[zeroed.as_bytes()]);
        self.magic.get() == MAGIC
            && self.own_offset.get() == offset
            && self.level.get() == level
            && (1..=CAPACITY).contains(&self.len())
            && sum == self.checksum.get()
            && self.used().windows(2).all(|pair| pair[0].key() < pair[1].key())
    }

    /// Slots in use, at most [`CAPACITY`].
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.count.get()).min(CAPACITY)
    }

    /// Whether no slot is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slots in use.
    #[must_use]
    pub fn used(&self) -> &[Slot] {
        &self.slots[..self.len()]
    }

    /// Inserts at `index`; the node must have room.
    pub fn insert(&mut self, index: usize, slot: Slot) {
        let len = self.len();
        self.slots.copy_within(index..len, index + 1);
        self.slots[index] = slot;
        self.count = U16::new(len as u16 + 1);
    }

    /// Removes and returns the slot at `index`.
    pub fn remove(&mut self, index: usize) -> Slot {
        let len = self.len();
        let slot = self.slots[index];
        self.slots.copy_within(index + 1..len, index);
        self.slots[len - 1] = Slot::default();
        self.count = U16::new(len as u16 - 1);
        slot
    }

    /// Moves the slots from `index` on to the end of `other`.
    pub fn move_tail(&mut self, index: usize, other: &mut Node) {
        let (len, start) = (self.len(), other.len());
        other.slots[start..start + len - index].copy_from_slice(&self.slots[index..len]);
        other.count = U16::new((start + len - index) as u16);
        self.slots[index..len].fill(Slot::default());
        self.count = U16::new(index as u16);
    }
}
