//! The bytes of a sealed object: the key page, then groups of pages, each behind the node with
//! their seals.
//!
//! A page's place depends on its number alone, so resizing moves none.

use super::PAGE;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Magic of a key page.
pub const MAGIC: u32 = u32::from_le_bytes(*b"SEAL");
/// Version of the layout described here.
pub const VERSION: u16 = 1;
/// XChaCha20-Poly1305 with random nonces.
pub const SUITE: u16 = 1;
/// Seals in a node.
pub const ARITY: u64 = 64;
/// The page of the extent that is the key page.
pub const KEY_PAGE: u64 = 0;
/// Offset of the root's seal in the key page.
pub const ROOT: usize = 64;
/// Offset of the first key slot in the key page.
pub const SLOTS: usize = 1024;
/// Key slots of an object.
pub const SLOT_COUNT: usize = 12;
/// Kind of a slot: empty.
pub const SLOT_EMPTY: u16 = 0;
/// Kind of a slot: a key file.
pub const SLOT_KEY_FILE: u16 = 1;
/// Kind of a slot: a passphrase, by Argon2id.
pub const SLOT_PASSPHRASE: u16 = 2;
/// Kind of a slot: a secret in a TPM 2.0, with its blob in other slots.
pub const SLOT_TPM: u16 = 3;
/// Kind of a slot: a part of another slot's blob, [`BlobSlot`].
pub const SLOT_BLOB: u16 = 4;
/// Bytes of a blob in a slot.
pub const BLOB: usize = 232;
/// Flag: an external anchor states the newest state.
pub const FLAG_ANCHORED: u32 = 1;
/// Flag: the root is signed, and each seal has the hash of its page.
pub const FLAG_SIGNED: u32 = 2;
/// Flag: the root authenticates the object's ID and name.
pub const FLAG_IDENTITY: u32 = 4;
/// Flag: the object has one key slot, of a key file.
pub const FLAG_ERASABLE: u32 = 8;
/// Offset of the root's signature in the key page.
pub const SIGNATURE: usize = 128;
/// Bytes of a signature: Ed25519 (RFC 8032).
pub const SIGNATURE_LEN: usize = 64;
/// Offset of the [`Identity`] in the key page.
pub const IDENTITY: usize = 192;
/// Most content pages of a sealed object.
pub const MOST: u64 = 1 << 34;

/// First line of the key page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Header {
    pub magic: U32,
    pub version: U16,
    pub suite: U16,
    pub granule: U32,
    pub flags: U32,
    pub id: [u8; 16],
    pub size: U64,
    pub content: U64,
    pub rotations: U64,
    pub reserved: [u8; 8],
}

/// ID and name of the sealed object; a line of the key page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Identity {
    pub id: [u8; 16],
    pub name: [u8; 24],
    pub other: [u8; 24],
}

/// A page's seal, a line of its parent. Zeros: the page is zeros, never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct Seal {
    pub nonce: [u8; 24],
    pub tag: [u8; 16],
    pub version: U64,
    pub hash: [u8; 16],
}

/// A key slot: the object's key, encrypted by a key derived from a secret.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct KeySlot {
    pub kind: U16,
    pub reserved: U16,
    pub memory: U32,
    pub passes: U32,
    pub lanes: U32,
    pub checksum: U64,
    pub created: U64,
    pub salt: [u8; 32],
    pub nonce: [u8; 24],
    pub wrapped: [u8; 32],
    pub tag: [u8; 16],
    pub label: [u8; 56],
    pub expires: U64,
    pub reserved2: [u8; 56],
}

/// A key slot with a part of another slot's blob.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "FORMAT.md explains the fields")]
pub struct BlobSlot {
    pub kind: U16,
    pub owner: U16,
    pub len: U32,
    pub part: U32,
    pub parts: U32,
    pub checksum: U64,
    pub bytes: [u8; BLOB],
}

const _: () = assert!(size_of::<BlobSlot>() == size_of::<KeySlot>());
const _: () = assert!(std::mem::offset_of!(BlobSlot, checksum) == std::mem::offset_of!(KeySlot, checksum));
const _: () = assert!(
    size_of::<Header>() == 64
        && size_of::<Identity>() == 64
        && size_of::<Seal>() == 64
        && size_of::<KeySlot>() == 256
);
const _: () = assert!(SLOTS + SLOT_COUNT * size_of::<KeySlot>() == PAGE as usize);

impl Seal {
    /// Whether the page was never written.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        *self == Seal::new_zeroed()
    }
}

/// Places of a sealed object's pages, within its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    content: u64,
}

impl Shape {
    /// Shape for `content` pages; `None`: none, or too many.
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
        KEY_PAGE
    }

    /// Nodes of a level; level 0 has the seals of the contents.
    #[must_use]
    pub fn nodes(self, level: u32) -> u64 {
        (0..=level).fold(self.content, |below, _| below.div_ceil(ARITY))
    }

    /// Level of the node that the root seals.
    #[must_use]
    pub fn top(self) -> u32 {
        (0..).find(|level| self.nodes(*level) == 1).unwrap_or(0)
    }

    /// Place of content page `page`.
    #[must_use]
    pub fn content_page(self, page: u64) -> u64 {
        self.page(0, page / ARITY) + 1 + page % ARITY
    }

    /// Place of a node. A leaf precedes its pages, and the upper nodes that this leaf is the first
    /// to need precede the leaf: those that begin with it, and a level's first if it is the second
    /// below.
    #[must_use]
    pub fn page(self, level: u32, index: u64) -> u64 {
        if level == 0 {
            return 1 + index * (1 + ARITY) + above(index + 1);
        }
        let leaf = match index {
            0 => ARITY.pow(level - 1),
            _ => index * ARITY.pow(level),
        };
        1 + leaf * (1 + ARITY) + above(leaf) + u64::from(level - 1)
    }

    /// Pages of the object in all.
    #[must_use]
    pub fn pages(self) -> u64 {
        let leaves = self.nodes(0);
        1 + above(leaves) + leaves + self.content
    }
}

fn above(leaves: u64) -> u64 {
    let (mut nodes, mut below) = (0, leaves);
    while below > 1 {
        below = below.div_ceil(ARITY);
        nodes += below;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_sealed_object_are_tiled_and_stay_where_they_are() {
        let (mut next, mut shorter) = (1, Shape { content: 0 });
        for leaf in 0..4200 {
            for content in [leaf * ARITY + 1, (leaf + 1) * ARITY] {
                let shape = Shape::of(content).unwrap();
                for level in 1..=shape.top() {
                    let had =
                        if shorter.content == 0 || level > shorter.top() { 0 } else { shorter.nodes(level) };
                    for index in had..shape.nodes(level) {
                        assert_eq!(
                            shape.page(level, index),
                            next,
                            "node {index} of level {level} of {content}"
                        );
                        next += 1;
                    }
                }
                if shorter.nodes(0) < shape.nodes(0) {
                    assert_eq!(shape.page(0, leaf), next);
                    next += 1;
                }
                for page in shorter.content..content {
                    assert_eq!(shape.content_page(page), next, "page {page}");
                    next += 1;
                }
                assert_eq!((shape.pages(), shape.nodes(shape.top())), (next, 1), "{content}");
                shorter = shape;
            }
        }
        assert!(Shape::of(0).is_none() && Shape::of(MOST + 1).is_none());
        let largest = Shape::of(MOST).unwrap();
        assert_eq!(largest.content_page(MOST - 1) + 1, largest.pages());
    }
}
