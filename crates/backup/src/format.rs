//! The bytes of a backup, as FORMAT.md, section 11, has them.

use indelible_store::format::checksum;
use indelible_store::store::Attributes;
use indelible_store::table::check_name;
use sha2::{Digest, Sha256};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// First bytes of a backup.
pub const MAGIC: [u8; 8] = *b"PMOBACKP";
/// Version of the format.
pub const VERSION: u32 = 1;
/// The hash of a chunk's record proves the frame and the hashes of the pages; those prove the
/// pages. A checksum in the frame tells whether the packed pages are as they were written.
pub const PAGES_BY_HASHES: u32 = 1;
/// Features of the backups that this release makes: all that it knows.
pub const FEATURES: u32 = PAGES_BY_HASHES;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Pages of a chunk.
pub const CHUNK: u64 = 64;
/// Bytes of a file's buffer: frames share one; most chunks are longer, and bypass it.
pub const BUFFER: usize = 64 << 10;
/// Most bytes of a record's body: a chunk's hashes and pages.
pub const BODY_MAX: usize = (CHUNK * (PAGE + 32)) as usize;
/// Most objects of a backup.
pub const OBJECTS_MAX: u32 = 1 << 28;

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// Kinds of records.
pub mod kind {
    /// An object.
    pub const OBJECT: u32 = 1;
    /// Pages of an object.
    pub const CHUNK: u32 = 2;
    /// The end.
    pub const END: u32 = 3;
}

/// How the pages of a chunk are kept.
pub mod packing {
    /// As they are.
    pub const PLAIN: u32 = 0;
    /// As one block of LZ4.
    pub const LZ4: u32 = 1;
}

/// The start of a backup; behind it, its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: U32,
    /// Bits that software must know to read it: [`FEATURES`]. Earlier releases set none.
    pub features: U32,
    /// Random identity of the backup.
    pub id: [u8; 16],
    /// Identity of the pool.
    pub pool: [u8; 16],
    /// Bytes of the pool.
    pub pool_len: U64,
    /// First address of the pool's window.
    pub window: U64,
    /// Bytes of the window.
    pub window_len: U64,
    /// Seconds since 1970.
    pub created: U64,
    /// Backup that it rests on; zero: none.
    pub parent: [u8; 16],
    /// The whole of that one.
    pub parent_hash: Hash,
    /// Backups below it.
    pub depth: U32,
    /// Objects.
    pub objects: U32,
    /// State of the pool: generation of the table's lane, its batches in that, psyncs of the
    /// objects; not before the state of an earlier backup in the folder. Zeros: an earlier release
    /// made the backup.
    pub state: [U64; 3],
    /// Zero.
    pub reserved: [u8; 96],
}

const _: () =
    assert!(size_of::<Header>() == 256 && size_of::<Frame>() == 48 && size_of::<ObjectBody>() == 120);

/// The start of a record; behind it, its body, then its hash.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Frame {
    /// One of [`kind`].
    pub kind: U32,
    /// Bytes of the body.
    pub len: U32,
    /// In a chunk: number of its object.
    pub object: U32,
    /// In a chunk: one of [`packing`].
    pub packing: U32,
    /// In a chunk: its first page; at the end: 1 if the backup was interrupted.
    pub first: U64,
    /// In a chunk: pages of it that the body has, bit by bit; at the end: chunks.
    pub held: U64,
    /// In a chunk: pages that are zeros now, and were not in the backup below.
    pub gone: U64,
    /// In a chunk with [`PAGES_BY_HASHES`]: checksum of the packed pages; else zero.
    pub sum: U64,
}

/// The body of an object's record; behind it, its name.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ObjectBody {
    /// Identity.
    pub id: [u8; 16],
    /// In bytes.
    pub size: U64,
    /// Address.
    pub address: U64,
    /// Bytes of addresses.
    pub reserved: U64,
    /// Flags of the entry.
    pub flags: U32,
    /// Durability class.
    pub class: u8,
    /// Retention model.
    pub retention: u8,
    /// Zero.
    pub zero: [u8; 2],
    /// Seconds since 1970.
    pub created: U64,
    /// Verifier of the read key.
    pub read_key: [u8; 16],
    /// Verifier of the write key.
    pub write_key: [u8; 16],
    /// Fingerprint.
    pub fingerprint: [u8; 16],
    /// High-water mark of psynced bytes.
    pub published: U64,
    /// Psyncs.
    pub psyncs: U64,
}

impl Frame {
    /// Bytes of the record's body that its hash covers, in a backup with these features.
    pub fn covered(&self, features: u32) -> usize {
        let len = self.len.get() as usize;
        match self.kind.get() == kind::CHUNK && features & PAGES_BY_HASHES != 0 {
            true => len.min(self.held.get().count_ones() as usize * size_of::<Hash>()),
            false => len,
        }
    }
}

impl ObjectBody {
    /// The body for these attributes, with the name.
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

    /// The attributes in a body; `None`: they are none, or no object can have the name.
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

/// The checksum of packed pages.
pub fn sum(packed: &[u8]) -> U64 {
    checksum(0, &[packed]).into()
}

/// The hash of these pieces, one behind the other.
pub fn hash(pieces: &[&[u8]]) -> Hash {
    let mut state = Sha256::new();
    pieces.iter().for_each(|piece| state.update(piece));
    state.finalize().into()
}

/// Pages that an object of `size` bytes has.
pub fn pages(size: u64) -> u64 {
    size.div_ceil(PAGE)
}

/// An ID for people.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
