//! The bytes of a sealed object behind its contents: the key page, and the nodes of the tree of seals.
//!
//! An object's extent holds, in this order, a page of ciphertext for each page of its contents, the key page, and the levels
//! of the tree from the leaves up. All of them are pages of the object, and change with its batches.

use super::PAGE;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Magic of a key page.
pub const MAGIC: u32 = u32::from_le_bytes(*b"SEAL");
/// Version of the layout described here.
pub const VERSION: u16 = 1;
/// XChaCha20-Poly1305 with random nonces.
pub const SUITE: u16 = 1;
/// Seals in a node, each of which is a line.
pub const ARITY: u64 = 64;
/// Offset of the root's seal in the key page.
pub const ROOT: usize = 64;
/// Offset of the first key slot in the key page.
pub const SLOTS: usize = 1024;
/// Key slots of an object.
pub const SLOT_COUNT: usize = 12;
/// Kind of a slot: empty.
pub const SLOT_EMPTY: u16 = 0;
/// Kind of a slot: the contents of a file.
pub const SLOT_KEY_FILE: u16 = 1;
/// Kind of a slot: a passphrase, by Argon2id.
pub const SLOT_PASSPHRASE: u16 = 2;
/// Kind of a slot: a secret that a TPM 2.0 keeps; its blob is in other slots.
pub const SLOT_TPM: u16 = 3;
/// Kind of a slot: a part of the blob of another slot, a [`BlobSlot`].
pub const SLOT_BLOB: u16 = 4;
/// Bytes of a blob in a slot.
pub const BLOB: usize = 232;
/// Most pages of contents that a sealed object has.
pub const MOST: u64 = 1 << 34;

/// The first line of the key page. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: U32,
    /// [`VERSION`].
    pub version: U16,
    /// [`SUITE`].
    pub suite: U16,
    /// Bytes that are sealed as one: a page.
    pub granule: U32,
    /// Zero.
    pub reserved: U32,
    /// Random; part of everything that is authenticated. Not the ID of the object: copies of it share this one.
    pub id: [u8; 16],
    /// Size of the object in bytes.
    pub size: U64,
    /// Pages of contents.
    pub content: U64,
    /// Zero.
    pub reserved2: [u8; 16],
}

/// The seal of a page, a line of its parent. All zeros: the page was never written, and is zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Seal {
    /// Random, new for each seal.
    pub nonce: [u8; 24],
    /// Tag of Poly1305.
    pub tag: [u8; 16],
    /// How often the page was sealed, from 1.
    pub version: U64,
    /// Zero.
    pub reserved: [u8; 16],
}

/// A key slot: the object's key, encrypted by a key that is derived from what its owner has.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct KeySlot {
    /// `SLOT_*`.
    pub kind: U16,
    /// Zero.
    pub reserved: U16,
    /// Argon2id: memory in KiB.
    pub memory: U32,
    /// Argon2id: passes.
    pub passes: U32,
    /// Argon2id: lanes.
    pub lanes: U32,
    /// XXH3 of the slot with this field zero, with the seed 0.
    pub checksum: U64,
    /// Seconds since 1970 at which it was made.
    pub created: U64,
    /// Random; the derived key depends on it.
    pub salt: [u8; 32],
    /// Random nonce of `wrapped`.
    pub nonce: [u8; 24],
    /// The object's key, encrypted.
    pub wrapped: [u8; 32],
    /// Its tag.
    pub tag: [u8; 16],
    /// UTF-8, for people, then zeros.
    pub label: [u8; 56],
    /// Zero.
    pub reserved2: [u8; 64],
}

/// A key slot that has a part of the blob of another one.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct BlobSlot {
    /// [`SLOT_BLOB`].
    pub kind: U16,
    /// The slot whose blob it is.
    pub owner: U16,
    /// Bytes of the part.
    pub len: U32,
    /// Which part, from 0.
    pub part: U32,
    /// Parts of the blob.
    pub parts: U32,
    /// As that of a [`KeySlot`], which has the same place.
    pub checksum: U64,
    /// The bytes, then zeros.
    pub bytes: [u8; BLOB],
}

const _: () = assert!(size_of::<BlobSlot>() == size_of::<KeySlot>());
const _: () = assert!(std::mem::offset_of!(BlobSlot, checksum) == std::mem::offset_of!(KeySlot, checksum));
const _: () = assert!(size_of::<Header>() == 64 && size_of::<Seal>() == 64 && size_of::<KeySlot>() == 256);
const _: () = assert!(SLOTS + SLOT_COUNT * size_of::<KeySlot>() == PAGE as usize);

impl Seal {
    /// Whether the page was never written.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Seal::new_zeroed()
    }
}

/// Places of a sealed object's pages, counted from its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    content: u64,
}

impl Shape {
    /// That of an object with so many pages of contents; `None`: none, or too many.
    #[must_use]
    pub fn of(content: u64) -> Option<Shape> {
        (1..=MOST).contains(&content).then_some(Shape { content })
    }

    /// Pages of contents.
    #[must_use]
    pub fn content(self) -> u64 {
        self.content
    }

    /// The key page.
    #[must_use]
    pub fn key_page(self) -> u64 {
        self.content
    }

    /// Nodes of a level: 0 is that of the leaves, which have the seals of the contents.
    #[must_use]
    pub fn nodes(self, level: u32) -> u64 {
        (0..=level).fold(self.content, |below, _| below.div_ceil(ARITY))
    }

    /// The level of the one node whose seal is the root.
    #[must_use]
    pub fn top(self) -> u32 {
        (0..).find(|level| self.nodes(*level) == 1).unwrap_or(0)
    }

    /// The page of a node.
    #[must_use]
    pub fn page(self, level: u32, index: u64) -> u64 {
        self.content + 1 + (0..level).map(|below| self.nodes(below)).sum::<u64>() + index
    }

    /// Pages of the object in all.
    #[must_use]
    pub fn pages(self) -> u64 {
        self.page(self.top(), 0) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_sealed_object_are_tiled() {
        for content in (1..9000).chain([MOST - 1, MOST]) {
            let shape = Shape::of(content).unwrap();
            let mut next = shape.key_page() + 1;
            for level in 0..=shape.top() {
                assert_eq!(shape.page(level, 0), next, "level {level} of {content}");
                next += shape.nodes(level);
            }
            assert_eq!((shape.pages(), shape.nodes(shape.top())), (next, 1), "{content}");
        }
        assert!(Shape::of(0).is_none() && Shape::of(MOST + 1).is_none());
    }
}
