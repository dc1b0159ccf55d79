//! The bytes of a segment, as FORMAT.md, section 11, has them as version 2. Objects, packings and
//! hashes are those of backups.

use indelible_store::store::Attributes;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub(crate) use indelible_backup::format::{Hash, MAGIC, ObjectBody, PAGE, hash, hex, is_generated, packing};

pub(crate) const VERSION: u32 = 2;
/// Bytes of an object in a record of runs, at most.
pub(crate) const RUNS_BYTES: usize = 256 << 10;
pub(crate) const RUNS_MOST: usize = 4096;
pub(crate) const INDEX_MOST: usize = 8192;
/// A record's longest body.
pub(crate) const BODY_MAX: usize = 8 + RUNS_MOST * size_of::<RunEntry>() + RUNS_BYTES;

pub(crate) mod kind {
    pub(crate) use indelible_backup::format::kind::{END, OBJECT};

    pub(crate) const GONE: u32 = 4;
    pub(crate) const RUNS: u32 = 5;
    pub(crate) const INDEX: u32 = 6;
    pub(crate) const STILL: u32 = 7;
}

pub(crate) mod flag {
    /// Begins from nothing.
    pub(crate) const FULL: u32 = 1;
    /// With this segment the objects are as of one moment.
    pub(crate) const MOMENT: u32 = 2;
}

/// A segment's start, followed by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) magic: [u8; 8],
    pub(crate) version: U32,
    /// Bits that a reader must know: none.
    pub(crate) features: U32,
    pub(crate) id: [u8; 16],
    pub(crate) pool: [u8; 16],
    pub(crate) pool_len: U64,
    pub(crate) window: U64,
    pub(crate) window_len: U64,
    /// Seconds since 1970.
    pub(crate) created: U64,
    /// ID of the segment before; zero: it begins from nothing.
    pub(crate) parent: [u8; 16],
    /// Whole hash of the segment before.
    pub(crate) parent_hash: Hash,
    /// Segments below it.
    pub(crate) depth: U32,
    pub(crate) objects: U32,
    pub(crate) epoch: U64,
    pub(crate) seq: U64,
    /// Of [`flag`].
    pub(crate) flags: U32,
    /// Zero.
    pub(crate) reserved: [u8; 100],
}

/// The start of a record: as in version 1.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Frame {
    /// Of [`kind`].
    pub(crate) kind: U32,
    /// Bytes of the body.
    pub(crate) len: U32,
    /// Runs, still: number of the object's record in this segment.
    pub(crate) object: U32,
    /// Runs: of [`packing`].
    pub(crate) packing: U32,
    /// Runs: psyncs of the object before. End: offset of the index.
    pub(crate) first: U64,
    /// Runs: psyncs of the object with them. End: number of records before it.
    pub(crate) held: U64,
    /// Runs: bytes of the object in it, unpacked.
    pub(crate) bytes: U64,
    pub(crate) zero: U64,
}

/// A run of bytes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct RunEntry {
    pub(crate) offset: U64,
    pub(crate) len: U64,
}

/// Pages that a record of runs changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct PageEntry {
    /// Number of the object's record.
    pub(crate) object: U32,
    pub(crate) pages: U32,
    pub(crate) first: U64,
    /// Offset of the record's frame in the segment.
    pub(crate) record: U64,
}

/// Body of a record that states the snapshot which an object's bytes equal there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct StillBody {
    /// ID of the snapshot, which no other object has.
    pub(crate) snapshot: [u8; 16],
    pub(crate) psyncs: U64,
    pub(crate) size: U64,
}

const _: () = assert!(size_of::<StillBody>() == 32);
const _: () = assert!(size_of::<Header>() == 256 && size_of::<Frame>() == 48);
const _: () = assert!(size_of::<PageEntry>() == 24);

/// Pages that a run touches.
pub(crate) fn pages_of(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / PAGE..(offset + len).div_ceil(PAGE)
}

/// Bytes that an object's pages have; `None`: impossible.
pub(crate) fn extent(attributes: &Attributes) -> Option<u64> {
    // Beyond the addresses of a process.
    if attributes.size > 1 << 62 {
        return None;
    }
    Some(attributes.pages() * PAGE)
}
