//! Seals: a page is encrypted, a node is authenticated, each under the object's key and a nonce of its own.

use super::PageBytes;
use super::key::ObjectKey;
use super::secret::scrub_stack;
use crate::entropy::random;
use crate::error::Result;
use crate::format::PAGE;
use crate::format::seal::{Header, Seal};
use crate::mutant::Mutant;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

/// Bytes that are authenticated with each page: what it is, whose, and where.
const PLACE: usize = 48;

/// Bytes of a proof that a text was made with the object's key: a nonce and a tag.
pub(super) const PROOF: usize = 40;
const NONCE: usize = 24;

/// The role of a page.
#[derive(Clone, Copy)]
pub(super) enum Role {
    /// A page of the contents.
    Granule,
    /// A node of this level.
    Node(u32),
}

/// The bytes of the page that is sealed, beside its place.
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

/// Seals pages of one object, and verifies them.
pub(super) struct Sealer {
    key: ObjectKey,
    id: [u8; 16],
}

impl Sealer {
    pub(super) fn new(key: &ObjectKey, id: [u8; 16]) -> Sealer {
        Sealer { key: key.clone(), id }
    }

    /// Uses the cipher, which has copies of the key as long as that takes.
    fn with<R>(&self, f: impl FnOnce(&XChaCha20Poly1305) -> R) -> R {
        let done = with_cipher(self.key.0.key(), f);
        scrub_stack();
        done
    }

    /// Encrypts page `index` of the contents, and returns its seal.
    pub(super) fn seal(&self, index: u64, version: u64, bytes: &mut PageBytes) -> Result<Seal> {
        let nonce = nonce(index)?;
        let place = place(&self.id, Role::Granule, index, version);
        let tag =
            self.with(|cipher| cipher.encrypt_in_place_detached(XNonce::from_slice(&nonce), &place, bytes));
        Ok(made(nonce, version, tag.unwrap_or_default().into()))
    }

    /// Decrypts page `index` of the contents; `false`: it does not match its seal, and what the bytes are is of no account.
    pub(super) fn open(&self, index: u64, seal: &Seal, bytes: &mut PageBytes) -> bool {
        let place = place(&self.id, Role::Granule, index, seal.version.get());
        let nonce = XNonce::from_slice(&seal.nonce);
        if Mutant::TagUnchecked.is_on() {
            return self.with(|cipher| cipher.encrypt_in_place_detached(nonce, &place, bytes).is_ok());
        }
        self.with(|cipher| cipher.decrypt_in_place_detached(nonce, &place, bytes, (&seal.tag).into()).is_ok())
    }

    /// The seal of a node. That of the root authenticates the header, too.
    pub(super) fn seal_node(
        &self,
        (level, index): (u32, u64),
        version: u64,
        header: Option<&Header>,
        bytes: &PageBytes,
    ) -> Result<Seal> {
        let nonce = nonce(index ^ u64::from(level) << 60)?;
        let tag = self.authenticate((level, index), version, header, bytes, &nonce);
        Ok(made(nonce, version, tag))
    }

    /// Whether a node is what was sealed.
    pub(super) fn verifies(
        &self,
        at: (u32, u64),
        seal: &Seal,
        header: Option<&Header>,
        bytes: &PageBytes,
    ) -> bool {
        let all = node(&self.id, at, seal.version.get(), header, bytes);
        let (nonce, mut nothing) = (XNonce::from_slice(&seal.nonce), []);
        let tag = (&seal.tag).into();
        let is_it =
            self.with(|cipher| cipher.decrypt_in_place_detached(nonce, &all, &mut nothing, tag).is_ok());
        is_it || Mutant::TagUnchecked.is_on()
    }

    /// A proof that a text, an anchor's record, was made with the object's key.
    pub(super) fn prove(&self, text: &str) -> Result<[u8; PROOF]> {
        let (nonce, mut proof) = (nonce(0)?, [0; PROOF]);
        let all = [b"anchor\0\0", &self.id[..], text.as_bytes()].concat();
        let tag =
            self.with(|cipher| cipher.encrypt_in_place_detached(XNonce::from_slice(&nonce), &all, &mut []));
        proof[..NONCE].copy_from_slice(&nonce);
        proof[NONCE..].copy_from_slice(&tag.unwrap_or_default());
        Ok(proof)
    }

    /// Whether a proof is one of this text.
    pub(super) fn is_proof(&self, text: &str, proof: &[u8; PROOF]) -> bool {
        let (nonce, tag) = proof.split_at(NONCE);
        let all = [b"anchor\0\0", &self.id[..], text.as_bytes()].concat();
        let (nonce, tag) = (XNonce::from_slice(nonce), tag.into());
        self.with(|cipher| cipher.decrypt_in_place_detached(nonce, &all, &mut [], tag).is_ok())
    }

    fn authenticate(
        &self,
        at: (u32, u64),
        version: u64,
        header: Option<&Header>,
        bytes: &PageBytes,
        nonce: &[u8; 24],
    ) -> [u8; 16] {
        let all = node(&self.id, at, version, header, bytes);
        // It fails for texts that are too long alone.
        let nonce = XNonce::from_slice(nonce);
        let tag = self.with(|cipher| cipher.encrypt_in_place_detached(nonce, &all, &mut []));
        tag.unwrap_or_default().into()
    }
}

/// Apart from its caller, so that what it leaves is below the caller's frame.
#[inline(never)]
pub(super) fn with_cipher<R>(key: &[u8; 32], f: impl FnOnce(&XChaCha20Poly1305) -> R) -> R {
    f(&XChaCha20Poly1305::new(key.into()))
}

/// The bytes by which a node is authenticated.
fn node(
    id: &[u8; 16],
    (level, index): (u32, u64),
    version: u64,
    header: Option<&Header>,
    bytes: &PageBytes,
) -> Vec<u8> {
    let mut all = Vec::with_capacity(PLACE + size_of::<Header>() + PAGE as usize);
    all.extend_from_slice(&place(id, Role::Node(level), index, version));
    all.extend_from_slice(header.map_or(&[], |header| header.as_bytes()));
    all.extend_from_slice(bytes);
    all
}

/// A nonce that was never used. `place` is of no account.
fn nonce(place: u64) -> Result<[u8; 24]> {
    if Mutant::NonceReused.is_on() {
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&place.to_le_bytes());
        return Ok(nonce);
    }
    random()
}

fn made(nonce: [u8; 24], version: u64, tag: [u8; 16]) -> Seal {
    Seal { nonce, tag, version: U64::new(version), reserved: [0; 16] }
}
