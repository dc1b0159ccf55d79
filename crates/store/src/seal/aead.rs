//! Seals: a page is encrypted, a node authenticated, each under the object's key and its own nonce.

use super::PageBytes;
use super::cipher::{self, Nonce, Tag};
use super::key::ObjectKey;
use crate::entropy::fill;
use crate::error::Result;
use crate::format::PAGE;
use crate::format::seal::{FLAG_SIGNED, Header, Seal};
use crate::mutant::Mutant;
use sha2::{Digest, Sha256};
use zerocopy::little_endian::U64;

const PLACE: usize = 48;

pub(super) const PROOF: usize = 40;
const NONCE: usize = 24;

#[derive(Clone, Copy)]
pub(super) enum Role {
    Granule,
    /// A node of this level.
    Node(u32),
}

fn place(id: &[u8; 16], role: Role, index: u64, version: u64) -> [u8; PLACE] {
    let (kind, level) = match role {
        Role::Granule => (*b"granule\0", 0),
        Role::Node(level) => (*b"node\0\0\0\0", u64::from(level)),
    };
    let version = if Mutant::VersionUnsealed.is_on() { 0 } else { version };
    let mut out = [0; PLACE];
    out[..8].copy_from_slice(&kind);
    out[8..24].copy_from_slice(id);
    out[24..32].copy_from_slice(&level.to_le_bytes());
    out[32..40].copy_from_slice(&index.to_le_bytes());
    out[40..].copy_from_slice(&version.to_le_bytes());
    out
}

pub(super) struct Sealer {
    key: ObjectKey,
    id: [u8; 16],
    /// Whether seals have hashes: in signed objects.
    hashed: bool,
}

impl Sealer {
    pub(super) fn new(key: &ObjectKey, header: &Header) -> Sealer {
        let hashed = header.flags.get() & FLAG_SIGNED != 0;
        Sealer { key: key.clone(), id: header.id, hashed }
    }

    /// Half of SHA-256 suffices: an attacker does not choose the nonce.
    fn hash(&self, nonce: &Nonce, associated: &[u8], bytes: &[u8]) -> [u8; 16] {
        let mut half = [0; 16];
        if self.hashed {
            let hash = Sha256::new().chain_update(nonce).chain_update(associated).chain_update(bytes);
            half.copy_from_slice(&hash.finalize()[..16]);
        }
        half
    }

    fn is_hash(&self, seal: &Seal, associated: &[u8], bytes: &[u8]) -> bool {
        let unhashed = !self.hashed || Mutant::HashUnchecked.is_on();
        unhashed || self.hash(&seal.nonce, associated, bytes) == seal.hash
    }

    pub(super) fn seal(
        &self,
        index: u64,
        version: u64,
        bytes: &mut PageBytes,
        nonces: &mut Nonces,
    ) -> Result<Seal> {
        let place = place(&self.id, Role::Granule, index, version);
        let nonce = nonces.next(index)?;
        let tag = cipher::encrypt(self.key.0.key(), &nonce, &place, bytes);
        Ok(made((nonce, tag), version, self.hash(&nonce, &place, bytes)))
    }

    /// Decrypts a content page; `false`: no match, and `bytes` is undefined.
    pub(super) fn open(&self, index: u64, seal: &Seal, bytes: &mut PageBytes) -> bool {
        let place = place(&self.id, Role::Granule, index, seal.version.get());
        if !self.is_hash(seal, &place, bytes) {
            return false;
        }
        if Mutant::TagUnchecked.is_on() {
            cipher::encrypt(self.key.0.key(), &seal.nonce, &place, bytes);
            return true;
        }
        cipher::decrypt(self.key.0.key(), &seal.nonce, &place, bytes, &seal.tag)
    }

    /// The seal of a node; the root's also authenticates the [head](super::key_page::head).
    pub(super) fn seal_node(
        &self,
        (level, index): (u32, u64),
        version: u64,
        head: Option<&[u8]>,
        bytes: &PageBytes,
        nonces: &mut Nonces,
    ) -> Result<Seal> {
        let nonce = nonces.next(index ^ u64::from(level) << 60)?;
        let all = node(&self.id, (level, index), version, head, bytes);
        let tag = cipher::encrypt(self.key.0.key(), &nonce, &all, &mut []);
        Ok(made((nonce, tag), version, self.hash(&nonce, &all, &[])))
    }

    pub(super) fn verifies(
        &self,
        at: (u32, u64),
        seal: &Seal,
        head: Option<&[u8]>,
        bytes: &PageBytes,
    ) -> bool {
        let all = node(&self.id, at, seal.version.get(), head, bytes);
        let is_it = cipher::decrypt(self.key.0.key(), &seal.nonce, &all, &mut [], &seal.tag);
        (is_it || Mutant::TagUnchecked.is_on()) && self.is_hash(seal, &all, &[])
    }

    pub(super) fn prove(&self, text: &str) -> Result<[u8; PROOF]> {
        let (nonce, mut proof) = (Nonces::default().next(0)?, [0; PROOF]);
        let tag = cipher::encrypt(self.key.0.key(), &nonce, &self.anchored(text), &mut []);
        proof[..NONCE].copy_from_slice(&nonce);
        proof[NONCE..].copy_from_slice(&tag);
        Ok(proof)
    }

    pub(super) fn is_proof(&self, text: &str, proof: &[u8; PROOF]) -> bool {
        let (mut nonce, mut tag) = (Nonce::default(), Tag::default());
        nonce.copy_from_slice(&proof[..NONCE]);
        tag.copy_from_slice(&proof[NONCE..]);
        cipher::decrypt(self.key.0.key(), &nonce, &self.anchored(text), &mut [], &tag)
    }

    fn anchored(&self, text: &str) -> Vec<u8> {
        [b"anchor\0\0", &self.id[..], text.as_bytes()].concat()
    }
}

fn node(
    id: &[u8; 16],
    (level, index): (u32, u64),
    version: u64,
    head: Option<&[u8]>,
    bytes: &PageBytes,
) -> Vec<u8> {
    let head = head.unwrap_or_default();
    let mut all = Vec::with_capacity(PLACE + head.len() + PAGE as usize);
    all.extend_from_slice(&place(id, Role::Node(level), index, version));
    all.extend_from_slice(head);
    all.extend_from_slice(bytes);
    all
}

#[derive(Default)]
pub(super) struct Nonces {
    left: Vec<Nonce>,
    last: usize,
}

impl Nonces {
    const MOST: usize = 64;

    fn next(&mut self, place: u64) -> Result<Nonce> {
        if Mutant::NonceReused.is_on() {
            let mut nonce = [0; 24];
            nonce[..8].copy_from_slice(&place.to_le_bytes());
            return Ok(nonce);
        }
        if self.left.is_empty() {
            // A page of a three-level object takes four nonces.
            self.last = (self.last * 4).clamp(4, Nonces::MOST);
            let mut nonces = [[0; 24]; Nonces::MOST];
            fill(nonces[..self.last].as_flattened_mut())?;
            self.left.extend(&nonces[..self.last]);
        }
        Ok(self.left.pop().unwrap_or_default())
    }
}

fn made((nonce, tag): (Nonce, Tag), version: u64, hash: [u8; 16]) -> Seal {
    Seal { nonce, tag, version: U64::new(version), hash }
}
