//! The bytes of a backup, as FORMAT.md, section 11, has them.

use indelible_store::format::checksum;
use indelible_store::store::Attributes;
use indelible_store::table::check_name;
use sha2::{Digest, Sha256};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

pub const MAGIC: [u8; 8] = *b"PMOBACKP";
pub const VERSION: u32 = 1;
/// A record's hash proves the frame and the hashes of the pages, which prove the pages. A checksum
/// in the frame covers the packed pages.
pub const PAGES_BY_HASHES: u32 = 1;
/// All that this release knows; its backups have them.
pub const FEATURES: u32 = PAGES_BY_HASHES;
pub const PAGE: u64 = 4096;
pub const CHUNK: u64 = 64;
/// Longer chunks bypass it.
pub const BUFFER: usize = 64 << 10;
/// A record's longest body: a chunk's hashes and pages.
pub const BODY_MAX: usize = (CHUNK * (PAGE + 32)) as usize;
pub const OBJECTS_MAX: u32 = 1 << 28;

pub type Hash = [u8; 32];

/// A page that is not zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PageHash {
    pub page: U64,
    pub hash: Hash,
}

pub mod kind {
    pub const OBJECT: u32 = 1;
    pub const CHUNK: u32 = 2;
    pub const END: u32 = 3;
}

pub mod packing {
    pub const PLAIN: u32 = 0;
    /// One block of LZ4.
    pub const LZ4: u32 = 1;
}

/// A backup's start, followed by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: U32,
    /// Bits that a reader must know: [`FEATURES`]. Earlier releases set none.
    pub features: U32,
    pub id: [u8; 16],
    pub pool: [u8; 16],
    pub pool_len: U64,
    pub window: U64,
    pub window_len: U64,
    /// Seconds since 1970.
    pub created: U64,
    /// ID of the base; zero: none.
    pub parent: [u8; 16],
    /// The base's whole hash.
    pub parent_hash: Hash,
    pub depth: U32,
    pub objects: U32,
    /// The pool's state: generation of the table's lane, its batches, psyncs of the objects; not
    /// before the state of an earlier backup in the folder. Zeros: of an earlier release.
    pub state: [U64; 3],
    /// Zero.
    pub reserved: [u8; 96],
}

const _: () =
    assert!(size_of::<Header>() == 256 && size_of::<Frame>() == 48 && size_of::<ObjectBody>() == 120);

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Frame {
    /// Of [`kind`].
    pub kind: U32,
    /// Bytes of the body.
    pub len: U32,
    /// Chunk: its object's number.
    pub object: U32,
    /// Chunk: of [`packing`].
    pub packing: U32,
    /// Chunk: its first page. End: 1 if the backup was interrupted.
    pub first: U64,
    /// Chunk: its pages in the body, bit by bit. End: number of chunks.
    pub held: U64,
    /// Chunk: pages that became zeros since the backup below.
    pub gone: U64,
    /// Chunk with [`PAGES_BY_HASHES`]: checksum of the packed pages; else zero.
    pub sum: U64,
}

/// The body of an object's record, followed by its name.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ObjectBody {
    pub id: [u8; 16],
    pub size: U64,
    pub address: U64,
    /// Bytes of addresses.
    pub reserved: U64,
    pub flags: U32,
    pub class: u8,
    pub retention: u8,
    pub zero: [u8; 2],
    /// Seconds since 1970.
    pub created: U64,
    pub read_key: [u8; 16],
    pub write_key: [u8; 16],
    pub fingerprint: [u8; 16],
    /// High-water mark of psynced bytes.
    pub published: U64,
    pub psyncs: U64,
}

impl Frame {
    /// Bytes under the record's hash.
    pub fn covered(&self, features: u32) -> usize {
        let len = self.len.get() as usize;
        match self.kind.get() == kind::CHUNK && features & PAGES_BY_HASHES != 0 {
            true => len.min(self.held.get().count_ones() as usize * size_of::<Hash>()),
            false => len,
        }
    }
}

impl ObjectBody {
    /// Includes the name.
    pub fn encode(kept: &Attributes) -> Vec<u8> {
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

    /// `None`: invalid attributes, or an impossible name.
    pub fn decode(bytes: &[u8]) -> Option<Attributes> {
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

pub fn sum(packed: &[u8]) -> U64 {
    checksum(0, &[packed]).into()
}

pub fn hash(pieces: &[&[u8]]) -> Hash {
    let mut state = Sha256::new();
    pieces.iter().for_each(|piece| state.update(piece));
    state.finalize().into()
}

pub fn pages(size: u64) -> u64 {
    size.div_ceil(PAGE)
}

/// Whether a run generates this name: the prefix, 16 hexadecimal digits, and so many numbers, each
/// after a dot. Other names with the prefix are a user's.
#[must_use]
pub fn is_generated(name: &str, prefix: &str, numbers: usize) -> bool {
    let Some(rest) = name.strip_prefix(prefix) else { return false };
    let mut parts = rest.split('.');
    let is_run = |run: &str| run.len() == 16 && run.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let of_run = parts.next().is_some_and(is_run);
    let rest: Vec<_> = parts.collect();
    of_run && rest.len() == numbers && rest.into_iter().all(is_number)
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
