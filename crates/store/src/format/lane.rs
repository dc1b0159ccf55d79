//! Lanes: the directory (table-owned) and the header in each lane (owned by the lane's holder).
//!
//! A lane's generation is the higher of the two. Batches of other generations do not count.

use super::{LINE, PAGE, checksum};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Magic of a directory slot in use.
pub const DIRECTORY_MAGIC: u32 = u32::from_le_bytes(*b"LANE");
/// Magic of a header.
pub const HEADER_MAGIC: u32 = u32::from_le_bytes(*b"LHDR");
/// Offsets of the two header copies, which no torn unit spans.
pub const HEADERS: [u64; 2] = [0, 2048];
/// Offset, in a lane, of its first batch.
pub const BODY: u64 = PAGE;

/// A lane's directory slot. Zeros: no space yet.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Directory {
    pub magic: U32,
    pub pid: U32,
    pub checksum: U64,
    pub offset: U64,
    pub len: U64,
    pub generation: U64,
    pub since: U64,
    pub boot: [u8; 16],
}

const _: () = assert!(size_of::<Directory>() as u64 == LINE);

impl Directory {
    /// Fills in the checksum.
    #[must_use]
    pub fn sealed(mut self, seed: u64) -> Self {
        self.checksum = U64::new(0);
        self.checksum = U64::new(checksum(seed, &[self.as_bytes()]));
        self
    }

    /// Whether the lane has space; `None`: damaged slot.
    #[must_use]
    pub fn in_use(&self, seed: u64, pool_len: u64) -> Option<bool> {
        if self.as_bytes().iter().all(|byte| *byte == 0) {
            return Some(false);
        }
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        let sound = self.magic.get() == DIRECTORY_MAGIC
            && checksum(seed, &[zeroed.as_bytes()]) == self.checksum.get()
            && self.offset.get().is_multiple_of(PAGE)
            && self.len.get().is_multiple_of(PAGE)
            && self.len.get() >= 2 * PAGE
            && self.offset.get().checked_add(self.len.get()).is_some_and(|end| end <= pool_len)
            && self.generation.get() <= GENERATIONS;
        sound.then_some(true)
    }
}

/// The highest plausible generation.
pub const GENERATIONS: u64 = u64::MAX / 2;

/// One copy of a lane's header.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Header {
    pub magic: U32,
    pub reserved: U32,
    pub checksum: U64,
    pub own_offset: U64,
    pub generation: U64,
    pub reserved2: [u8; 32],
}

const _: () = assert!(size_of::<Header>() as u64 == LINE);

impl Header {
    /// A header for the lane at `offset`.
    #[must_use]
    pub fn new(seed: u64, offset: u64, generation: u64) -> Self {
        let mut header = Header {
            magic: U32::new(HEADER_MAGIC),
            own_offset: U64::new(offset),
            generation: U64::new(generation),
            ..Header::default()
        };
        header.checksum = U64::new(checksum(seed, &[header.as_bytes()]));
        header
    }

    /// The generation; `None`: damaged; 0: never written.
    #[must_use]
    pub fn generation(&self, seed: u64, offset: u64) -> Option<u64> {
        if self.as_bytes().iter().all(|byte| *byte == 0) {
            return Some(0);
        }
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        let sound = self.magic.get() == HEADER_MAGIC
            && self.own_offset.get() == offset
            && checksum(seed, &[zeroed.as_bytes()]) == self.checksum.get()
            && self.generation.get() <= GENERATIONS;
        sound.then(|| self.generation.get())
    }
}
