//! A reader of sealed objects that knows FORMAT.md alone.

use chacha20poly1305::aead::AeadInPlace;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use indelible_store::format::seal::KeySlot;
use sha2::{Digest, Sha256};
use zerocopy::FromBytes;

pub(crate) struct Independent {
    pub(crate) cipher: XChaCha20Poly1305,
    pub(crate) key: [u8; 32],
    pub(crate) id: [u8; 16],
}

impl Independent {
    pub(crate) fn open(key_page: &[u8]) -> Result<Independent, String> {
        let slot = KeySlot::read_from_bytes(&key_page[1024..1280]).map_err(|error| error.to_string())?;
        let derived = Sha256::new().chain_update(b"indelible key file 1").chain_update(slot.salt);
        let derived = derived.chain_update([0x5a; 32]).finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&key_page[16..32]);
        let mut bound = key_page[1024..1280].to_vec();
        bound[16..24].fill(0);
        bound[64..136].fill(0);
        let aad = [b"key slot", &id[..], &bound].concat();
        let mut key = slot.wrapped;
        XChaCha20Poly1305::new(&derived)
            .decrypt_in_place_detached(XNonce::from_slice(&slot.nonce), &aad, &mut key, (&slot.tag).into())
            .map_err(|_| "the slot does not open".to_owned())?;
        Ok(Independent { cipher: XChaCha20Poly1305::new(&key.into()), key, id })
    }

    pub(crate) fn verify(
        &self,
        kind: &[u8; 8],
        at: (u64, u64),
        seal: &[u8],
        behind: &[u8],
        bytes: &mut [u8],
    ) -> Result<(), String> {
        let (level, index) = (at.0.to_le_bytes(), at.1.to_le_bytes());
        let aad = [kind, &self.id[..], &level, &index, &seal[40..48], behind].concat();
        let (nonce, tag) = (XNonce::from_slice(&seal[..24]), (&seal[24..40]).into());
        self.cipher
            .decrypt_in_place_detached(nonce, &aad, bytes, tag)
            .map_err(|_| format!("{:?} {at:?} does not verify", String::from_utf8_lossy(kind)))
    }
}
