//! The bytes of a segment, as FORMAT.md, section 11, has them as version 2.

use indelible_store::store::Attributes;
use indelible_store::table::check_name;
use sha2::{Digest, Sha256};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub(crate) const MAGIC: [u8; 8] = *b"PMOBACKP";
pub(crate) const VERSION: u32 = 2;
pub(crate) const PAGE: u64 = 4096;
/// Bytes of an object in a record of runs, at most.
pub(crate) const RUNS_BYTES: usize = 256 << 10;
pub(crate) const RUNS_MOST: usize = 4096;
pub(crate) const INDEX_MOST: usize = 8192;
/// A record's longest body.
pub(crate) const BODY_MAX: usize = 8 + RUNS_MOST * size_of::<RunEntry>() + RUNS_BYTES;

pub(crate) type Hash = [u8; 32];

pub(crate) mod kind {
    pub(crate) const OBJECT: u32 = 1;
    pub(crate) const END: u32 = 3;
    pub(crate) const GONE: u32 = 4;
    pub(crate) const RUNS: u32 = 5;
    pub(crate) const INDEX: u32 = 6;
}

pub(crate) mod packing {
    pub(crate) const PLAIN: u32 = 0;
    /// One block of LZ4.
    pub(crate) const LZ4: u32 = 1;
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
    /// Records of objects.
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
    /// Runs: number of the object's record in this segment.
    pub(crate) object: U32,
    /// Runs: of [`packing`].
    pub(crate) packing: U32,
    /// Runs: psyncs of the object before. End: offset of the index.
    pub(crate) first: U64,
    /// Runs: psyncs of the object with them. End: number of records before it.
    pub(crate) held: U64,
    /// Runs: bytes of the object in it, unpacked.
    pub(crate) bytes: U64,
    /// Zero.
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
    /// Number of pages.
    pub(crate) pages: U32,
    pub(crate) first: U64,
    /// Offset of the record's frame in the segment.
    pub(crate) record: U64,
}

/// The body of an object's record, followed by its name: as in version 1.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct ObjectBody {
    pub(crate) id: [u8; 16],
    pub(crate) size: U64,
    pub(crate) address: U64,
    pub(crate) reserved: U64,
    pub(crate) flags: U32,
    pub(crate) class: u8,
    pub(crate) retention: u8,
    pub(crate) zero: [u8; 2],
    pub(crate) created: U64,
    pub(crate) read_key: [u8; 16],
    pub(crate) write_key: [u8; 16],
    pub(crate) fingerprint: [u8; 16],
    pub(crate) published: U64,
    pub(crate) psyncs: U64,
}

const _: () = assert!(size_of::<Header>() == 256 && size_of::<Frame>() == 48);
const _: () = assert!(size_of::<ObjectBody>() == 120 && size_of::<PageEntry>() == 24);

impl ObjectBody {
    /// Includes the name.
    pub(crate) fn encode(kept: &Attributes) -> Vec<u8> {
        let mut body = ObjectBody::new_zeroed();
        body.id = kept.id;
        body.size = kept.size.into();
        body.address = kept.address.into();
        body.reserved = kept.reserved.into();
        body.flags = kept.flags.into();
        (body.class, body.retention) = (kept.class, kept.retention);
        body.created = kept.created.into();
        [body.read_key, body.write_key] = kept.keys;
        body.fingerprint = kept.fingerprint;
        body.published = kept.published.into();
        body.psyncs = kept.psyncs.into();
        [body.as_bytes(), kept.name.as_bytes()].concat()
    }

    /// `None`: an impossible name, or too short.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Attributes> {
        let (body, name) = ObjectBody::read_from_prefix(bytes).ok()?;
        let name = std::str::from_utf8(name).ok().filter(|name| check_name(name).is_ok())?;
        Some(Attributes {
            name: name.to_owned(),
            id: body.id,
            size: body.size.get(),
            address: body.address.get(),
            reserved: body.reserved.get(),
            flags: body.flags.get(),
            class: body.class,
            retention: body.retention,
            created: body.created.get(),
            keys: [body.read_key, body.write_key],
            fingerprint: body.fingerprint,
            published: body.published.get(),
            psyncs: body.psyncs.get(),
        })
    }
}

pub(crate) fn hash(pieces: &[&[u8]]) -> Hash {
    let mut state = Sha256::new();
    pieces.iter().for_each(|piece| state.update(piece));
    state.finalize().into()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Pages that a run touches: first, and count.
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
