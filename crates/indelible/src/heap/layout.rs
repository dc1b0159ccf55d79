//! The heap's bytes: FORMAT.md explains the fields, and `tests/heap_format.rs` compares. Fields
//! that change are atomics: stray stores may change them at any time.

pub use super::allocation;
use crate::plain::Plain;
use std::mem::size_of;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

pub const PAGE: u64 = 4096;
pub const CHUNK_PAGES: u64 = 512;
pub const MAGIC: u64 = u64::from_le_bytes(*b"PMO-HEAP");
/// The newest format, which this code writes.
pub const VERSION: u32 = 1;
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"CHNK");
pub const SPAN_MAGIC: u32 = u32::from_le_bytes(*b"SPAN");
pub const ROOT_MAGIC: u32 = u32::from_le_bytes(*b"ROOT");
pub const INDEX_MAGIC: u32 = u32::from_le_bytes(*b"RIDX");
/// The smallest heap: its header, a chunk's, one free page.
pub const MIN_PAGES: u64 = 3;
/// Page numbers have 32 bits.
pub const MAX_PAGES: u64 = 1 << 32;
/// Directory entries in the header.
pub const INLINE_CHUNKS: usize = 128;
/// Root slots in the header.
pub const INLINE_ROOTS: usize = 128;
/// Root slots in a page of them.
pub const PAGE_ROOTS: usize = 255;
pub const CLASSES: usize = 72;
pub const SPAN_BLOCKS: usize = 1024;

#[repr(C)]
pub struct Header {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub features: AtomicU32,
    pub pages: AtomicU64,
    pub frontier: AtomicU64,
    pub directory: AtomicU64,
    pub capacity: AtomicU64,
    pub cursor: AtomicU64,
    pub roots: AtomicU64,
    pub recent: [AtomicU32; CLASSES],
    pub far: AtomicU64,
    pub reserved: [AtomicU64; 83],
    pub chunks: [AtomicU64; INLINE_CHUNKS],
    pub slots: [RootSlot; INLINE_ROOTS],
}

#[repr(C)]
pub struct RootSlot {
    pub hash: AtomicU64,
    pub page: AtomicU64,
}

#[repr(C)]
pub struct RootIndex {
    pub magic: AtomicU32,
    pub reserved: AtomicU32,
    pub next: AtomicU64,
    pub slots: [RootSlot; PAGE_ROOTS],
}

/// The page of the table of other objects.
#[repr(C)]
pub struct FarTable {
    pub magic: AtomicU32,
    pub reserved: AtomicU32,
    pub count: AtomicU64,
    pub names: AtomicU64,
    pub taken: AtomicU64,
    pub reserved2: [AtomicU64; 252],
    pub middles: [AtomicU64; FAR_MIDDLES],
}

/// Pages of leaves, or 0.
#[repr(C)]
pub struct FarMiddle {
    pub leaves: [AtomicU64; FAR_LEAVES],
}

#[repr(C)]
pub struct FarLeaf {
    pub entries: [FarSlot; FAR_ENTRIES],
}

/// An entry: a target of far pointers.
#[repr(C)]
pub struct FarSlot {
    pub id: [AtomicU64; 2],
    pub name: AtomicU64,
    pub name_len: AtomicU32,
    pub resolver_len: AtomicU8,
    pub rights: AtomicU8,
    pub kind: AtomicU8,
    pub private: AtomicU8,
}

/// Header of a chunk, in the page that the directory names.
#[repr(C)]
pub struct Chunk {
    pub magic: AtomicU32,
    pub touched: AtomicU32,
    pub number: AtomicU64,
    pub reserved: [AtomicU64; 6],
    pub used: [AtomicU64; 8],
    pub entries: [AtomicU32; CHUNK_PAGES as usize],
}

/// Start of a span; then an [allocation](allocation) byte per block.
#[repr(C)]
pub struct SpanHeader {
    pub magic: AtomicU32,
    pub class: AtomicU32,
    pub page: AtomicU64,
    pub pages: AtomicU32,
    pub count: AtomicU32,
    pub data: AtomicU32,
    pub allocation: AtomicU32,
    pub reserved: [AtomicU64; 4],
}

/// Fixed part of a root's page, followed by name, type name and layout.
#[repr(C)]
pub struct RootRecord {
    pub magic: u32,
    pub name_len: u16,
    pub type_len: u16,
    pub layout_len: u32,
    pub reserved: u32,
    pub checksum: u64,
    pub offset: u64,
    pub size: u64,
    pub fingerprint: [u64; 2],
    pub reserved2: u64,
}

/// Longest name of a root or type, in bytes.
pub const NAME_MAX: usize = 255;
/// Longest description, in bytes.
pub const LAYOUT_MAX: usize = crate::types::MOST;
/// Bit of `features`: roots may have several pages.
pub const LONG_ROOTS: u32 = 1;
/// Bit of `features`: a table of other objects.
pub const FAR: u32 = 2;
/// Bit of `features`: private entries in that table.
pub const FAR_PRIVATE: u32 = 4;
pub const FAR_MAGIC: u32 = u32::from_le_bytes(*b"FARP");
/// Pages of leaves in the table of other objects.
pub const FAR_MIDDLES: usize = 256;
/// Leaves of such a page.
pub const FAR_LEAVES: usize = 512;
pub const FAR_ENTRIES: usize = 128;
/// Bytes of an entry's names: a page.
pub const FAR_NAME_MAX: usize = PAGE as usize;

const _: () = assert!(cfg!(target_endian = "little"), "heaps are little-endian, as the data in them");
const _: () = assert!(size_of::<Header>() == PAGE as usize);
const _: () = assert!(size_of::<RootIndex>() == PAGE as usize);
const _: () = assert!(size_of::<Chunk>() == 2176);
const _: () = assert!(size_of::<SpanHeader>() == 64);
const _: () = assert!(size_of::<RootRecord>() == 64);
const _: () = assert!(size_of::<FarTable>() == PAGE as usize && size_of::<FarMiddle>() == PAGE as usize);
const _: () = assert!(size_of::<FarLeaf>() == PAGE as usize && size_of::<FarSlot>() == 32);
const _: () = assert!((FAR_MIDDLES * FAR_LEAVES * FAR_ENTRIES) as u32 - 1 == crate::types::far::MOST_INDEX);

#[allow(unsafe_code)]
mod shared {
    use super::*;

    pub trait Shared: Plain {}

    macro_rules! shared {
        ($($ty:ty),*) => {
            $(
                // SAFETY: `repr(C)`, atomics only, without padding (asserted above): every bit
                // pattern is a value.
                unsafe impl Plain for $ty {
                    const SHARED: bool = true;
                }
                impl Shared for $ty {}
            )*
        };
    }
    shared!(Header, RootSlot, RootIndex, Chunk, SpanHeader, FarTable, FarMiddle, FarLeaf, FarSlot);
    impl Shared for AtomicU8 {}
    impl Shared for AtomicU32 {}
    impl Shared for AtomicU64 {}
}
pub(super) use shared::Shared;

/// Entry of a chunk's page table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// Class of a span.
    pub class: u8,
    /// Pages of the run from here on.
    pub pages: u64,
}

/// Use of the run that begins at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    Header = 1,
    /// The heap's own pages: a directory, roots.
    Meta = 2,
    Run = 3,
    Span = 4,
    /// The rest of a block from an earlier chunk.
    Tail = 5,
}

impl Entry {
    /// 32 bits: kind, class, pages from the lowest bit on in 8, 8 and 16 bits.
    #[must_use]
    pub fn pack(self) -> u32 {
        self.kind as u32 | u32::from(self.class) << 8 | (self.pages as u32) << 16
    }

    /// `None` for 0 and for invalid bits.
    #[must_use]
    pub fn unpack(bits: u32) -> Option<Entry> {
        let kind = match bits & 0xff {
            1 => Kind::Header,
            2 => Kind::Meta,
            3 => Kind::Run,
            4 => Kind::Span,
            5 => Kind::Tail,
            _ => return None,
        };
        Some(Entry { kind, class: (bits >> 8) as u8, pages: u64::from(bits >> 16) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Free,
    Pages {
        /// Page of the chunk that holds the header.
        header: u64,
        largest: u64,
    },
    /// First of a block of whole chunks.
    Large {
        pages: u64,
        /// Whether it is the heap's own.
        meta: bool,
    },
    /// In the middle of such a block.
    Body,
}

impl Use {
    /// The directory's entry: kind in 8 bits, header (or whether it is the heap's own) in 16, a
    /// number of pages in 40.
    #[must_use]
    pub fn pack(self) -> u64 {
        match self {
            Use::Free => 0,
            Use::Pages { header, largest } => 1 | header << 8 | largest << 24,
            Use::Large { pages, meta } => 2 | u64::from(meta) << 8 | pages << 24,
            Use::Body => 3,
        }
    }

    /// `None` for invalid bits.
    #[must_use]
    pub fn unpack(bits: u64) -> Option<Use> {
        let (header, pages) = (bits >> 8 & 0xffff, bits >> 24);
        match bits & 0xff {
            0 if bits == 0 => Some(Use::Free),
            1 if header < CHUNK_PAGES && pages < CHUNK_PAGES => Some(Use::Pages { header, largest: pages }),
            2 if header < 2 => Some(Use::Large { pages, meta: header == 1 }),
            3 if bits == 3 => Some(Use::Body),
            _ => None,
        }
    }
}
