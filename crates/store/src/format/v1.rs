//! Format 1, for upgrades: the structs that format 2 changed, and their conversions.

use super::batch::{self, MAGIC};
use super::entry::{self, FLAG_HIDDEN};
use super::{DATA, LINE, MIN_POOL, PAGE, checksum, superblock};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The version that superblocks of the format state.
pub const VERSION: u32 = 1;
/// Offset of [`Progress`] in a slot.
pub const PROGRESS: u64 = 960;
const HIDDEN: u8 = 1;

/// A superblock slot.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Superblock {
    magic: [u8; 8],
    version: U32,
    features: U32,
    pub sequence: U64,
    checksum: U64,
    id: [u8; 16],
    seed: U64,
    length: U64,
    data: U64,
    window: U64,
    window_len: U64,
    created: U64,
    label_len: U32,
    reserved: U32,
    label: [u8; 128],
}

const _: () = assert!(size_of::<Superblock>() == 232);

impl Superblock {
    /// Whether the slot is intact and of format 1.
    #[must_use]
    pub fn verify(&self, medium_len: u64) -> bool {
        let mut zeroed = *self;
        zeroed.checksum = U64::new(0);
        let length = self.length.get();
        self.magic == superblock::MAGIC
            && self.version.get() == VERSION
            && self.features.get() == 0
            && checksum(0, &[zeroed.as_bytes()]) == self.checksum.get()
            && (MIN_POOL..=medium_len).contains(&length)
            && length.is_multiple_of(PAGE)
            && self.data.get() == DATA
    }

    /// The slot in format 2, not sealed.
    #[must_use]
    pub fn upgraded(&self) -> superblock::Superblock {
        let mut new = superblock::Superblock::new_zeroed();
        new.magic = self.magic;
        new.version = U32::new(super::VERSION);
        new.sequence = self.sequence;
        new.id = self.id;
        new.seed = self.seed;
        new.length = self.length;
        new.data = self.data;
        new.window = self.window;
        new.window_len = self.window_len;
        new.created = self.created;
        new.label_len = self.label_len;
        new.label = self.label;
        new.set_release();
        new
    }
}

/// An object's table entry.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Entry {
    magic: U32,
    state: u8,
    class: u8,
    retention: u8,
    flags: u8,
    checksum: U64,
    id: [u8; 16],
    own_offset: U64,
    size: U64,
    pages: U64,
    primary: U64,
    shadow: U64,
    address: U64,
    reserved: U64,
    binding: U64,
    lane: U32,
    pid: U32,
    boot: [u8; 16],
    created: U64,
    read_key: [u8; 16],
    write_key: [u8; 16],
    fingerprint: [u8; 16],
    ties: U64,
    next_free: U64,
    seal: [u8; 128],
    name_len: U32,
    reserved2: [u8; 60],
    name: [u8; 512],
    reserved3: [u8; 64],
}

const _: () = assert!(size_of::<Entry>() as u64 == PROGRESS);

/// An object's progress line.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Progress {
    id: [u8; 16],
    published: U64,
    psyncs: U64,
    checksum: U64,
    direct: U64,
    reserved: [u8; 16],
}

const _: () = assert!(size_of::<Progress>() as u64 == LINE);

impl Progress {
    /// Converts a line of format 2.
    #[must_use]
    pub fn of(new: &entry::Progress, seed: u64) -> Progress {
        let (id, published, psyncs, direct) = (new.id, new.published, new.psyncs, new.direct);
        let mut line = Progress { id, published, psyncs, checksum: U64::new(0), direct, reserved: [0; 16] };
        line.checksum = U64::new(checksum(seed, &[line.as_bytes()]));
        line
    }

    fn upgraded(&self, id: &[u8; 16], seed: u64) -> entry::Progress {
        let sum = |id: [u8; 16]| {
            let line = Progress { id, checksum: U64::new(0), ..*self };
            checksum(seed, &[line.as_bytes()])
        };
        let (published, psyncs, direct) = (self.published, self.psyncs, self.direct);
        let new = entry::Progress { id: *id, published, psyncs, direct, ..entry::Progress::default() };
        let wrong: u32 = self.id.iter().zip(id).map(|(a, b)| (a ^ b).count_ones()).sum();
        if sum(self.id) == self.checksum.get() {
            return if self.id == *id { new.sealed(seed) } else { entry::Progress::default() };
        }
        if wrong <= entry::NEAR || sum(*id) == self.checksum.get() {
            let sealed = new.sealed(seed);
            return entry::Progress { checksum: U64::new(!sealed.checksum.get()), ..sealed };
        }
        entry::Progress::default()
    }
}

/// A slot of the table.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Slot {
    entry: Entry,
    progress: Progress,
}

const _: () = assert!(size_of::<Slot>() as u64 == entry::SIZE);

impl Slot {
    /// The slot in format 2; `None`: not an intact object at `offset`.
    #[must_use]
    pub fn upgraded(&self, seed: u64, offset: u64, pool_len: u64) -> Option<entry::Slot> {
        let old = &self.entry;
        let mut zeroed = *old;
        zeroed.checksum = U64::new(0);
        let is_whole = old.magic.get() == entry::MAGIC
            && checksum(seed, &[zeroed.as_bytes()]) == old.checksum.get()
            // Meaningless in format 1.
            && old.seal == [0; 128]
            && (old.shadow.get(), old.ties.get()) == (0, 0);
        if !is_whole {
            return None;
        }
        let mut new = entry::Entry::new_zeroed();
        new.magic = old.magic;
        (new.state, new.class, new.retention) = (old.state, old.class, old.retention);
        new.flags = U32::new(old.flags.into());
        new.id = old.id;
        new.own_offset = old.own_offset;
        new.size = old.size;
        new.pages = old.pages;
        new.primary = old.primary;
        new.address = old.address;
        new.reserved = old.reserved;
        new.binding = old.binding;
        (new.lane, new.pid, new.boot) = (old.lane, old.pid, old.boot);
        new.created = old.created;
        new.read_key = old.read_key;
        new.write_key = old.write_key;
        new.fingerprint = old.fingerprint;
        let name = old.name.get(..old.name_len.get() as usize)?;
        let shown = name.strip_prefix(&[HIDDEN]).unwrap_or(name);
        new.set(FLAG_HIDDEN, shown.len() < name.len());
        new.name_len = U32::new(shown.len() as u32);
        new.name[..shown.len()].copy_from_slice(shown);
        let new = new.sealed(seed);
        let progress = self.progress.upgraded(&old.id, seed);
        new.verify(seed, offset, pool_len).then_some(entry::Slot { entry: new, progress })
    }
}

/// The first line of a batch.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Header {
    magic: U32,
    sections: U32,
    head_sum: U64,
    body_sum: U64,
    pub generation: U64,
    sequence: U64,
    len: U64,
    runs: U32,
    joined: U32,
    lines: U64,
}

const _: () = assert!(size_of::<Header>() as u64 == LINE);

impl Header {
    /// Whether this is an intact header, of either format.
    #[must_use]
    pub fn is_intact(&self, seed: u64) -> bool {
        let zeroed = Header { head_sum: U64::new(0), ..*self };
        self.magic.get() == MAGIC && checksum(seed, &[zeroed.as_bytes()]) == self.head_sum.get()
    }

    /// The header in format 2, for unchanged other bytes; `None`: not intact.
    #[must_use]
    pub fn upgraded(&self, seed: u64) -> Option<batch::Header> {
        let lines = u32::try_from(self.lines.get()).ok().filter(|_| self.is_intact(seed))?;
        let mut new = batch::Header {
            magic: self.magic,
            sections: self.sections,
            head_sum: U64::new(0),
            body_sum: self.body_sum,
            generation: self.generation,
            sequence: self.sequence,
            len: self.len,
            runs: self.runs,
            lines: U32::new(lines),
            durable: U64::new(self.sequence.get().saturating_sub(self.joined.get().into())),
        };
        new.head_sum = U64::new(new.sum(seed));
        Some(new)
    }
}
