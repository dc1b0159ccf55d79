//! The table entry of an object.
//!
//! Bytes 0..896 belong to the table lane, the last two lines (`Progress`) to the lane of the writer
//! that has it: no byte ever has unreplayed batches in two lanes.

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
/// `lane` of an entry that no writer has attached.
pub const NO_LANE: u32 = u32::MAX;
/// Pages of a bitmap for which there is a page that says which of them count.
pub const BITMAP_GROUP: u64 = 8 * PAGE;

/// Wrong bits in an ID that still show whose it was: two random ones differ in 64 or so.
pub(super) const NEAR: u32 = 16;

/// Detached.
pub const STATE_D: u8 = 0;
/// Attached for reading.
pub const STATE_R: u8 = 1;
/// Attached for writing; P and C are derived from the lane.
pub const STATE_W: u8 = 2;

/// Class: plain stores, durable at psync.
pub const CLASS_PSYNC: u8 = 0;
/// Class: stores in transactions alone, durable at each commit.
pub const CLASS_TRANSACTIONAL: u8 = 1;
/// Class: stores in transactions alone, which outlive the process at each commit, and become
/// durable now and then.
pub const CLASS_ON_DEMAND: u8 = 2;
/// Class: plain stores of any number of processes at once to memory outside the pool, which nothing
/// makes durable.
pub const CLASS_SHARED: u8 = 3;
/// Objects that one can be tied to.
pub const TIES_MAX: u64 = 4096;
/// One object's slot, without its last two lines.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Entry {
    /// [`MAGIC`] or [`FREE_MAGIC`].
    pub magic: U32,
    /// D, R or W.
    pub state: u8,
    /// Durability class: [`CLASS_PSYNC`], [`CLASS_TRANSACTIONAL`], [`CLASS_ON_DEMAND`],
    /// [`CLASS_SHARED`].
    pub class: u8,
    /// Retention model: 0, none stated.
    pub retention: u8,
    /// Zero.
    pub reserved1: u8,
    /// XXH3 of the struct with this field zero, seeded with the pool's seed.
    pub checksum: U64,
    /// Random 128-bit identity.
    pub id: [u8; 16],
    /// Offset of this slot in the pool: a copy of a slot elsewhere does not verify.
    pub own_offset: U64,
    /// Size in bytes, as asked for.
    pub size: U64,
    /// Pages of the extent.
    pub pages: U64,
    /// `FLAG_*`. In the first line, as the checksum is: a repair changes both with one write.
    pub flags: U32,
    /// Length of `name` in bytes.
    pub name_len: U32,

    /// First page of the primary.
    pub primary: U64,
    /// Fixed virtual address.
    pub address: U64,
    /// Bytes of address space kept for growth, from `address`.
    pub reserved: U64,
    /// Number of the write attach in force or last in force; unique in the pool for all time.
    pub binding: U64,
    /// Lane of that attach, [`NO_LANE`] when detached.
    pub lane: U32,
    /// Process of the last attach.
    pub pid: U32,
    /// Boot of the last attach.
    pub boot: [u8; 16],
    /// Seconds since 1970 at creation.
    pub created: U64,

    /// Verifier of the read key; zero: none.
    pub read_key: [u8; 16],
    /// Verifier of the write key; zero: none.
    pub write_key: [u8; 16],
    /// Fingerprint of the layout of the object's data; zero: not stated.
    pub fingerprint: [u8; 16],
    /// First page of the list of IDs of the objects that this one outlives; 0: none.
    pub ties: U64,
    /// Next free slot, in a free slot.
    pub next_free: U64,

    /// First page of a durable shadow; 0: the shadow is in DRAM.
    pub shadow: U64,
    /// Entry of the base that unwritten pages come from; 0: none.
    pub base: U64,
    /// First page of the bitmap of pages that are the object's own, not its base's; 0: none.
    pub overlay: U64,
    /// Zero.
    pub reserved3: U64,
    /// First page of the description of the contents' types; 0: none.
    pub types: U64,
    /// Boot in which the contents of a volatile object hold; zero: they outlast it.
    pub volatile_boot: [u8; 16],
    /// Pages, from the first on, that are the base's unless the bitmap says otherwise; 0 without a
    /// base.
    pub based: U64,
    /// Objects that have this one as their base.
    pub users: U64,
    /// IDs in the list of ties.
    pub tie_count: U64,
    /// XXH3 of the object's ID and that list, seeded with the pool's seed.
    pub ties_sum: U64,
    /// Number of the memory outside the pool that may have commits of the object which the pool
    /// lacks; 0: there is none.
    pub memory: U64,
    /// Boot in which that memory is; zero without one.
    pub memory_boot: [u8; 16],
    /// Zero; space for later versions.
    pub reserved2: [u8; 80],
    /// UTF-8, not terminated.
    pub name: [u8; 512],
}

/// The last two lines of a slot: the only ones that psync itself changes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Progress {
    /// The object this record speaks of; another object's counts as zero.
    pub id: [u8; 16],
    /// Bytes of the object ever made durable by a psync, as a high-water mark: beyond it the
    /// primary is zero.
    pub published: U64,
    /// Psyncs completed.
    pub psyncs: U64,
    /// XXH3 of the record with this field zero, seeded with the pool's seed.
    pub checksum: U64,
    /// End of a direct write that no psync has published: the primary from `published` to here is
    /// undefined, and zeroed by the next attach. Not beyond `published`: there is none.
    pub direct: U64,
    /// Zero; space for later versions: the root of a sealed object's tree, an epoch.
    pub reserved: [u8; 80],
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new_zeroed()
    }
}

/// A whole slot, as it is read.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Slot {
    /// The entry.
    pub entry: Entry,
    /// Its last two lines.
    pub progress: Progress,
}

const _: () = assert!(size_of::<Entry>() as u64 == PROGRESS && size_of::<Slot>() as u64 == SIZE);

/// A statement of an entry that this code does not know.
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

    /// Whether the slot is a used one whose every field is in range for a pool of `pool_len` bytes.
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

    /// Whether the extent is as long as one of this size is.
    #[must_use]
    pub fn has_pages_for_size(&self) -> bool {
        let size = self.size.get();
        size > 0 && self.pages_of(size) == Some(self.pages.get())
    }

    /// Pages of the extent that the object has with this size: those of a sealed one have seals
    /// among them. `None`: it cannot have it.
    #[must_use]
    pub fn pages_of(&self, size: u64) -> Option<u64> {
        let content = pages_for(size);
        if self.has(FLAG_SEALED) { Shape::of(content).map(Shape::pages) } else { Some(content) }
    }

    /// Whether the entry's statements about a base are possible.
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

    /// Whether the list of ties can be where it is said to be.
    fn ties_are_in_range(&self, pool_len: u64) -> bool {
        let (first, count) = (self.ties.get(), self.tie_count.get());
        !self.has(FLAG_TIED)
            || (1..=TIES_MAX).contains(&count)
                && first >= DATA / PAGE
                && first.checked_add(self.ties_pages()).is_some_and(|end| end <= pool_len / PAGE)
    }

    /// The first statement of the entry that this code does not know, and must know to use the
    /// object.
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

    /// As [`unknown`](Self::unknown), and flags that software need not know: a new entry states
    /// nothing that this code does not define.
    #[must_use]
    pub fn undefined(&self) -> Option<Unknown> {
        let flags = self.flags.get() & !FLAGS;
        self.unknown().or_else(|| (flags != 0).then_some(Unknown::Flags(flags)))
    }

    /// Whether the flags have this one.
    #[must_use]
    pub fn has(&self, flag: u32) -> bool {
        self.flags.get() & flag != 0
    }

    /// Whether the object is volatile, and made in another boot of the machine than this one: its
    /// contents are gone.
    #[must_use]
    pub fn is_gone(&self, boot: &[u8; 16]) -> bool {
        self.has(FLAG_VOLATILE) && self.volatile_boot != *boot
    }

    /// Makes the object one whose contents hold in this boot alone; `None`: they outlast it.
    pub fn hold_in(&mut self, boot: Option<[u8; 16]>) {
        self.set(FLAG_VOLATILE, boot.is_some());
        self.volatile_boot = boot.unwrap_or_default();
    }

    /// Sets or clears a flag.
    pub fn set(&mut self, flag: u32, on: bool) {
        self.flags = U32::new(if on { self.flags.get() | flag } else { self.flags.get() & !flag });
    }

    /// A free slot at `offset`, followed by `next` in the list of them.
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

    /// The name; verified entries hold valid UTF-8. A damaged entry's name is read as far as
    /// possible.
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

    /// Bytes of whole pages that the contents have: of a sealed object, the extent without its
    /// seals.
    #[must_use]
    pub fn content_len(&self) -> u64 {
        if self.has(FLAG_SEALED) { self.size.get().next_multiple_of(PAGE) } else { self.extent_len() }
    }

    /// Pages of the bitmap that says which pages are the object's own, with its summaries; 0
    /// without a base.
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

    /// The pool's range with the list of ties; only the table's lane writes there.
    #[must_use]
    pub fn ties_range(&self) -> Range<u64> {
        let start = self.ties.get().saturating_mul(PAGE);
        start..start.saturating_add(self.ties_pages() * PAGE)
    }

    /// The pool's ranges with the object's data: its extent, and its bitmap.
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

    /// Progress of the object `id` according to this line: `None` if the line is damaged, zero if
    /// it belongs to another object (a slot that was used before) or was never written.
    ///
    /// A line that was never written does not hold the object's ID. A line that has nearly this ID,
    /// or that is intact except for the ID, was therefore the object's: taken for zero, it would
    /// let a direct write, and the zeros that undo one, overwrite psynced bytes.
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
