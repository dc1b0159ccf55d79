//! The table entry of an object.
//!
//! The table's lane owns bytes 0..896; the writer's lane owns the last two lines (`Progress`). So
//! no byte has unreplayed batches in two lanes.

pub use super::flags::*;
use super::seal::Shape;
use super::{DATA, PAGE, checksum, pages_for};
use std::ops::Range;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Magic of a used slot.
pub const MAGIC: u32 = u32::from_le_bytes(*b"PMOE");
/// Magic of a free slot.
pub const FREE_MAGIC: u32 = u32::from_le_bytes(*b"FREE");
/// Size of a slot in bytes: four in a page.
pub const SIZE: u64 = 1024;
/// Offset of [`Progress`] in a slot.
pub const PROGRESS: u64 = SIZE - 128;
/// Longest name in bytes of UTF-8.
pub const NAME_MAX: usize = 511;
/// `lane` without an attached writer.
pub const NO_LANE: u32 = u32::MAX;
/// Pages of a bitmap per summary page.
pub const BITMAP_GROUP: u64 = 8 * PAGE;

pub(super) const NEAR: u32 = 16;

/// Detached.
pub const STATE_D: u8 = 0;
/// Attached for reading.
pub const STATE_R: u8 = 1;
/// Attached for writing; P and C are derived from the lane.
pub const STATE_W: u8 = 2;

/// Class: plain stores, durable at psync.
pub const CLASS_PSYNC: u8 = 0;
/// Class: stores in transactions, durable at each commit.
pub const CLASS_TRANSACTIONAL: u8 = 1;
/// Class: stores in transactions, which outlive the process at each commit and become durable
/// later.
pub const CLASS_ON_DEMAND: u8 = 2;
/// Class: plain stores of several processes to memory outside the pool, never durable.
pub const CLASS_SHARED: u8 = 3;
/// Most ties of an object.
pub const TIES_MAX: u64 = 4096;
/// One object's slot, without its progress.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Entry {
    pub magic: U32,
    pub state: u8,
    pub class: u8,
    pub retention: u8,
    pub reserved1: u8,
    pub checksum: U64,
    pub id: [u8; 16],
    pub own_offset: U64,
    pub size: U64,
    pub pages: U64,
    pub flags: U32,
    pub name_len: U32,

    pub primary: U64,
    pub address: U64,
    pub reserved: U64,
    pub binding: U64,
    pub lane: U32,
    pub pid: U32,
    pub boot: [u8; 16],
    pub created: U64,

    pub read_key: [u8; 16],
    pub write_key: [u8; 16],
    pub fingerprint: [u8; 16],
    pub ties: U64,
    pub next_free: U64,

    pub shadow: U64,
    pub base: U64,
    pub overlay: U64,
    pub reserved3: U64,
    pub types: U64,
    pub volatile_boot: [u8; 16],
    pub based: U64,
    pub users: U64,
    pub tie_count: U64,
    pub ties_sum: U64,
    pub memory: U64,
    pub memory_boot: [u8; 16],
    pub reserved2: [u8; 80],
    pub name: [u8; 512],
}

/// The last two lines of a slot: the only ones that a psync changes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Progress {
    pub id: [u8; 16],
    pub published: U64,
    pub psyncs: U64,
    pub checksum: U64,
    pub direct: U64,
    pub reserved: [u8; 80],
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new_zeroed()
    }
}

/// A whole slot.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Slot {
    pub entry: Entry,
    pub progress: Progress,
}

const _: () = assert!(size_of::<Entry>() as u64 == PROGRESS && size_of::<Slot>() as u64 == SIZE);

/// A feature of an entry that this code does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// A durability class.
    #[error("durability class {0}")]
    Class(u8),
    /// A retention model.
    #[error("retention model {0}")]
    Retention(u8),
    /// Flags.
    #[error("flags {0:#x}")]
    Flags(u32),
}

impl Entry {
    /// Fills in the checksum.
    #[must_use]
    pub fn sealed(mut self, seed: u64) -> Self {
        self.checksum = U64::new(0);
        self.checksum = U64::new(checksum(seed, &[self.as_bytes()]));
        self
    }

    /// Whether this is a used slot with every field in range for a pool of `pool_len` bytes.
    #[must_use]
    pub fn verify(&self, seed: u64, offset: u64, pool_len: u64) -> bool {
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        let (primary, pages) = (self.primary.get(), self.pages.get());
        self.magic.get() == MAGIC
            && checksum(seed, &[zeroed.as_bytes()]) == self.checksum.get()
            && self.own_offset.get() == offset
            && self.state <= STATE_W
            && (1..=NAME_MAX).contains(&(self.name_len.get() as usize))
            && std::str::from_utf8(self.name_bytes()).is_ok()
            && pages > 0
            && self.size.get() <= pages.saturating_mul(PAGE)
            && (!self.has(FLAG_SEALED) || self.has_pages_for_size())
            && self.has_whole_pairs()
            && primary.checked_add(pages).is_some_and(|end| end <= pool_len / PAGE)
            && pages.saturating_mul(PAGE) <= self.reserved.get()
            && self.address.get().is_multiple_of(PAGE)
            && self.address.get().checked_add(self.reserved.get()).is_some_and(|end| end <= 1 << 47)
            && self.overlay_is_in_range(pool_len)
            && self.ties_are_in_range(pool_len)
    }

    /// Whether the extent suits the size.
    #[must_use]
    pub fn has_pages_for_size(&self) -> bool {
        let size = self.size.get();
        size > 0 && self.pages_of(size) == Some(self.pages.get())
    }

    /// Pages of the extent for `size` bytes, seals included; `None`: impossible.
    #[must_use]
    pub fn pages_of(&self, size: u64) -> Option<u64> {
        let content = pages_for(size);
        if self.has(FLAG_SEALED) { Shape::of(content).map(Shape::pages) } else { Some(content) }
    }

    fn overlay_is_in_range(&self, pool_len: u64) -> bool {
        if !self.has(FLAG_OVERLAY) {
            return true;
        }
        let (based, bitmap) = (self.based.get(), self.overlay.get());
        let end = bitmap.checked_add(self.bitmap_pages());
        (1..=self.pages.get()).contains(&based)
            && bitmap >= DATA / PAGE
            && end.is_some_and(|end| end <= pool_len / PAGE)
            && self.base.get() != self.own_offset.get()
    }

    fn ties_are_in_range(&self, pool_len: u64) -> bool {
        let (first, count) = (self.ties.get(), self.tie_count.get());
        !self.has(FLAG_TIED)
            || (1..=TIES_MAX).contains(&count)
                && first >= DATA / PAGE
                && first.checked_add(self.ties_pages()).is_some_and(|end| end <= pool_len / PAGE)
    }

    /// The first unknown feature that the object's use requires.
    #[must_use]
    pub fn unknown(&self) -> Option<Unknown> {
        let flags = self.flags.get() & !(FLAGS | OPTIONAL_FLAGS);
        let transactions = matches!(self.class, CLASS_TRANSACTIONAL | CLASS_ON_DEMAND);
        if self.class > CLASS_SHARED || self.has(FLAG_ECC) && !transactions {
            Some(Unknown::Class(self.class))
        } else if self.retention != 0 {
            Some(Unknown::Retention(self.retention))
        } else {
            (flags != 0).then_some(Unknown::Flags(flags))
        }
    }

    /// [`unknown`](Self::unknown), optional flags included: for new entries.
    #[must_use]
    pub fn undefined(&self) -> Option<Unknown> {
        let flags = self.flags.get() & !FLAGS;
        self.unknown().or_else(|| (flags != 0).then_some(Unknown::Flags(flags)))
    }

    /// Whether `flag` is set.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.get() & flag != 0
    }

    /// Whether the object is volatile and of another boot.
    #[must_use]
    pub fn is_gone(&self, boot: &[u8; 16]) -> bool {
        self.has(FLAG_VOLATILE) && self.volatile_boot != *boot
    }

    /// Makes the object volatile in `boot`; `None`: not volatile.
    pub fn hold_in(&mut self, boot: Option<[u8; 16]>) {
        self.set(FLAG_VOLATILE, boot.is_some());
        self.volatile_boot = boot.unwrap_or_default();
    }

    /// Sets or clears a flag.
    pub fn set(&mut self, flag: u32, on: bool) {
        self.flags = U32::new(if on { self.flags.get() | flag } else { self.flags.get() & !flag });
    }

    /// A free slot at `offset`, linked to `next`.
    #[must_use]
    pub fn free(offset: u64, next: u64) -> Self {
        let mut slot = Entry { magic: U32::new(FREE_MAGIC), ..Entry::new_zeroed() };
        (slot.own_offset, slot.next_free) = (U64::new(offset), U64::new(next));
        slot
    }

    /// Sets the name, of [`NAME_MAX`] bytes at most.
    ///
    /// # Panics
    /// If it is longer.
    pub fn set_name(&mut self, name: &str) {
        self.name.fill(0);
        self.name[..name.len()].copy_from_slice(name.as_bytes());
        self.name_len = U32::new(name.len() as u32);
    }

    /// The name's bytes.
    #[must_use]
    pub fn name_bytes(&self) -> &[u8] {
        &self.name[..(self.name_len.get() as usize).min(NAME_MAX)]
    }

    /// The name, as far as it is valid UTF-8.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.name_bytes().split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// First byte of the primary.
    #[must_use]
    pub fn primary_offset(&self) -> u64 {
        self.primary.get() * PAGE
    }

    /// Bytes of the extent.
    #[must_use]
    pub fn extent_len(&self) -> u64 {
        self.pages.get() * PAGE
    }

    /// Bytes of the contents in whole pages, without seals.
    #[must_use]
    pub fn content_len(&self) -> u64 {
        if self.has(FLAG_SEALED) { self.size.get().next_multiple_of(PAGE) } else { self.extent_len() }
    }

    /// Pages of the bitmap of own pages, summaries included; 0 without a base.
    #[must_use]
    pub fn bitmap_pages(&self) -> u64 {
        let pages = if self.has(FLAG_OVERLAY) { self.based.get().div_ceil(8 * PAGE) } else { 0 };
        pages + pages.div_ceil(BITMAP_GROUP)
    }

    /// First byte of the bitmap.
    #[must_use]
    pub fn bitmap_offset(&self) -> u64 {
        self.overlay.get() * PAGE
    }

    /// Pages of the list of ties.
    #[must_use]
    pub fn ties_pages(&self) -> u64 {
        if self.has(FLAG_TIED) { self.tie_count.get().saturating_mul(16).div_ceil(PAGE) } else { 0 }
    }

    /// The pool's range of the list of ties, which the table's lane owns.
    #[must_use]
    pub fn ties_range(&self) -> Range<u64> {
        let start = self.ties.get().saturating_mul(PAGE);
        start..start.saturating_add(self.ties_pages() * PAGE)
    }

    /// The pool's ranges of the extent and the bitmap.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let bitmap = self.bitmap_offset()..self.bitmap_offset() + self.bitmap_pages() * PAGE;
        let extent = self.primary_offset()..self.primary_offset() + self.extent_len();
        std::iter::once(extent).chain((!bitmap.is_empty()).then_some(bitmap))
    }
}

impl Progress {
    /// Fills in the checksum.
    #[must_use]
    pub fn sealed(self, seed: u64) -> Self {
        let whole = Progress { checksum: U64::new(0), ..self };
        Progress { checksum: U64::new(checksum(seed, &[whole.as_bytes()])), ..whole }
    }

    /// Progress of the object `id`: `None` if the line is damaged, zero if another object's or
    /// never written.
    ///
    /// A line with nearly this ID, or intact but for it, is the object's: as zero, it would let a
    /// direct write overwrite psynced bytes.
    #[must_use]
    pub fn of(&self, id: &[u8; 16], seed: u64) -> Option<Progress> {
        let sum = |id: [u8; 16]| {
            let line = Progress { id, checksum: U64::new(0), ..*self };
            checksum(seed, &[line.as_bytes()])
        };
        if sum(self.id) == self.checksum.get() {
            return Some(if self.id == *id { *self } else { Progress::default() });
        }
        let wrong: u32 = self.id.iter().zip(id).map(|(a, b)| (a ^ b).count_ones()).sum();
        (wrong > NEAR && sum(*id) != self.checksum.get()).then(Progress::default)
    }
}
