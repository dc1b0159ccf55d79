//! IDs that are hashes of contents.

use crate::error::Result;
use crate::format::PAGE;
use sha2::{Digest, Sha256};

pub(super) const PIECE: usize = 1 << 20;

/// The ID of these bytes: the first half of their SHA-256.
#[must_use]
pub fn content_id(content: &[u8]) -> [u8; 16] {
    let mut hash = ContentHash::default();
    hash.add(content);
    hash.id()
}

#[derive(Default)]
pub(super) struct ContentHash(Sha256);

impl ContentHash {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn id(self) -> [u8; 16] {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0.finalize()[..16]);
        id
    }
}

pub(super) fn in_pieces(
    size: u64,
    read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    tell: &mut dyn FnMut(u64, &[u8]),
) -> Result<()> {
    let mut bytes = vec![0; PIECE.min(size.next_multiple_of(PAGE) as usize)];
    for at in (0..size).step_by(PIECE) {
        let len = (size - at).min(PIECE as u64);
        let piece = &mut bytes[..len.next_multiple_of(PAGE) as usize];
        read(at, piece)?;
        tell(at, &piece[..len as usize]);
    }
    Ok(())
}

pub(super) fn hash_pieces(size: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>) -> Result<[u8; 16]> {
    let mut hash = ContentHash::default();
    in_pieces(size, read, &mut |_, bytes| hash.add(bytes))?;
    Ok(hash.id())
}
