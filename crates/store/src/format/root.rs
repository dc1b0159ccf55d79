//! The table root: counters and trees, in a page that only table batches change.

use super::entry::SIZE;
use super::{DATA, MAX_POOL, MIN_POOL, PAGE, checksum};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Levels a tree has at most.
pub const HEIGHT: u32 = 16;

/// First bytes of the page.
pub const MAGIC: u32 = u32::from_le_bytes(*b"ROOT");

/// A tree of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum TreeId {
    /// (name hash, entry offset) → entry offset.
    Names = 0,
    /// (first half, second half of the ID) → entry offset.
    Ids = 1,
    /// (first page, 0) → pages; free space.
    FreeByPage = 2,
    /// (pages, first page) → 0; the same space.
    FreeBySize = 3,
    /// (address, 0) → bytes; free addresses.
    FreeByAddress = 4,
    /// (bytes, address) → 0; the same addresses.
    FreeByReach = 5,
}

/// All trees, in the order of `Root::trees`.
pub const TREES: [TreeId; 6] = [
    TreeId::Names,
    TreeId::Ids,
    TreeId::FreeByPage,
    TreeId::FreeBySize,
    TreeId::FreeByAddress,
    TreeId::FreeByReach,
];

/// Root of a tree.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct TreeRoot {
    pub node: U64,
    pub count: U64,
    pub height: U32,
    pub reserved: U32,
}

/// Newest batch of the table's lane that was applied, hence durable. The record itself may be lost.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Applied {
    pub generation: U64,
    pub batches: U64,
    pub checksum: U64,
    pub reserved: U64,
}

impl Applied {
    /// Record of `batches` batches.
    #[must_use]
    pub fn new(seed: u64, generation: u64, batches: u64) -> Self {
        let zero = U64::new(0);
        let (generation, batches) = (U64::new(generation), U64::new(batches));
        let unsealed = Applied { generation, batches, checksum: zero, reserved: zero };
        Applied { checksum: U64::new(checksum(seed, &[unsealed.as_bytes()])), ..unsealed }
    }

    /// Applied batches of a generation, according to the record.
    #[must_use]
    pub fn of(&self, seed: u64, generation: u64) -> u64 {
        let stated = Applied::new(seed, generation, self.batches.get());
        if stated.as_bytes() == self.as_bytes() { self.batches.get() } else { 0 }
    }
}

/// The page's used part.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Root {
    pub magic: U32,
    pub boots: U32,
    pub checksum: U64,
    pub objects: U64,
    pub next_binding: U64,
    pub boot: [u8; 16],
    pub virgin: U64,
    pub free_pages: U64,
    pub free_page: U64,
    pub free_page_count: U64,
    pub chunk_next: U64,
    pub chunk_end: U64,
    pub free_slot: U64,
    pub length: U64,
    pub trees: [TreeRoot; 6],
}

const _: () = assert!(size_of::<Root>() == 256);

impl Root {
    /// Fills in the checksum.
    #[must_use]
    pub fn sealed(mut self, seed: u64) -> Self {
        self.checksum = U64::new(0);
        self.checksum = U64::new(checksum(seed, &[self.as_bytes()]));
        self
    }

    /// The pool's length: the root's, or else the superblock's.
    #[must_use]
    pub fn pool_len(&self, superblock: u64) -> u64 {
        match self.length.get() {
            0 => superblock,
            length => length,
        }
    }

    /// Whether the page is valid in a pool whose superblock states this length.
    #[must_use]
    pub fn verify(&self, seed: u64, superblock: u64) -> bool {
        let pool_len = self.pool_len(superblock);
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        let page =
            |offset: u64| offset.is_multiple_of(PAGE) && (offset == 0 || (DATA..pool_len).contains(&offset));
        self.magic.get() == MAGIC
            && checksum(seed, &[zeroed.as_bytes()]) == self.checksum.get()
            && (MIN_POOL..=MAX_POOL).contains(&pool_len)
            && pool_len.is_multiple_of(PAGE)
            && page(self.free_page.get())
            && self.chunk_next.get().is_multiple_of(PAGE)
            && self.chunk_next.get() <= self.chunk_end.get()
            && self.chunk_end.get() <= pool_len
            && self.free_page_count.get() <= pool_len / PAGE
            && self.objects.get() <= pool_len / SIZE
            && self.virgin.get() <= pool_len
            && self.free_pages.get() <= pool_len / PAGE
            && self.trees.iter().all(|tree| page(tree.node.get()) && tree.height.get() <= HEIGHT)
    }
}
