//! XChaCha20-Poly1305: ChaCha20-Poly1305 (RFC 8439) under a key that HChaCha20 derives from the
//! object's key and the first 16 bytes of the nonce.
//!
//! On x86-64 ring does it, elsewhere chacha20poly1305; each call overwrites its leftovers on the
//! stack.

use super::secret::scrub_stack;

pub(super) type Nonce = [u8; 24];
pub(super) type Tag = [u8; 16];

pub(super) fn encrypt(key: &[u8; 32], nonce: &Nonce, associated: &[u8], bytes: &mut [u8]) -> Tag {
    #[cfg(feature = "__engines")]
    let tag = choice::encrypt(choice::chosen(), key, nonce, associated, bytes);
    #[cfg(not(feature = "__engines"))]
    let tag = engine::encrypt(key, nonce, associated, bytes);
    scrub_stack();
    tag.unwrap_or_default()
}

/// `false`: no match, and `bytes` is undefined.
pub(super) fn decrypt(key: &[u8; 32], nonce: &Nonce, associated: &[u8], bytes: &mut [u8], tag: &Tag) -> bool {
    #[cfg(feature = "__engines")]
    let is_it = choice::decrypt(choice::chosen(), key, nonce, associated, bytes, tag);
    #[cfg(not(feature = "__engines"))]
    let is_it = engine::decrypt(key, nonce, associated, bytes, tag);
    scrub_stack();
    is_it
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
use ring_engine as engine;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use rust_engine as engine;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod ring_engine {
    use super::{Nonce, Tag};
    use chacha20::cipher::consts::U10;
    use ring::aead::{self, Aad, CHACHA20_POLY1305, LessSafeKey, UnboundKey};

    fn derive(key: &[u8; 32], nonce: &Nonce) -> Option<(LessSafeKey, aead::Nonce)> {
        let (first, last) = nonce.split_first_chunk::<16>()?;
        let key = chacha20::hchacha::<U10>(key.into(), first.into());
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(last);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?;
        Some((LessSafeKey::new(key), aead::Nonce::assume_unique_for_key(nonce)))
    }

    /// A separate frame, so that its stack leftovers are below the caller's.
    #[inline(never)]
    pub(super) fn encrypt(key: &[u8; 32], nonce: &Nonce, associated: &[u8], bytes: &mut [u8]) -> Option<Tag> {
        let (key, nonce) = derive(key, nonce)?;
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(associated), bytes).ok()?;
        tag.as_ref().try_into().ok()
    }

    #[inline(never)]
    pub(super) fn decrypt(
        key: &[u8; 32],
        nonce: &Nonce,
        associated: &[u8],
        bytes: &mut [u8],
        tag: &Tag,
    ) -> bool {
        let Some((key, nonce)) = derive(key, nonce) else { return false };
        key.open_in_place_separate_tag(nonce, Aad::from(associated), (*tag).into(), bytes, 0..).is_ok()
    }
}

#[cfg(any(test, miri, feature = "__engines", not(target_arch = "x86_64")))]
mod rust_engine {
    use super::{Nonce, Tag};
    use chacha20poly1305::aead::{AeadInPlace, KeyInit};
    use chacha20poly1305::{XChaCha20Poly1305, XNonce};

    /// A separate frame, so that its stack leftovers are below the caller's.
    #[inline(never)]
    pub(super) fn encrypt(key: &[u8; 32], nonce: &Nonce, associated: &[u8], bytes: &mut [u8]) -> Option<Tag> {
        let cipher = XChaCha20Poly1305::new(key.into());
        cipher.encrypt_in_place_detached(XNonce::from_slice(nonce), associated, bytes).ok().map(Into::into)
    }

    #[inline(never)]
    pub(super) fn decrypt(
        key: &[u8; 32],
        nonce: &Nonce,
        associated: &[u8],
        bytes: &mut [u8],
        tag: &Tag,
    ) -> bool {
        let cipher = XChaCha20Poly1305::new(key.into());
        cipher.decrypt_in_place_detached(XNonce::from_slice(nonce), associated, bytes, tag.into()).is_ok()
    }
}

/// Engines for benchmarks. An object of one engine is unreadable to another.
#[cfg(feature = "__engines")]
pub mod choice {
    use super::{Nonce, Tag, engine, rust_engine};
    use chacha20::XChaCha20;
    use chacha20::cipher::{KeyIvInit, StreamCipher};
    use std::sync::atomic::{AtomicU8, Ordering};

    /// The process's engine for sealed objects.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Engine {
        /// The default on this processor.
        #[default]
        Shipped,
        /// chacha20poly1305.
        Portable,
        /// Encryption without integrity.
        WithoutIntegrity,
    }

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    /// Selects the process's engine.
    pub fn choose(engine: Engine) {
        CHOSEN.store(engine as u8, Ordering::SeqCst);
    }

    pub(super) fn chosen() -> Engine {
        match CHOSEN.load(Ordering::Relaxed) {
            1 => Engine::Portable,
            2 => Engine::WithoutIntegrity,
            _ => Engine::Shipped,
        }
    }

    #[inline(never)]
    fn stream(key: &[u8; 32], nonce: &Nonce, bytes: &mut [u8]) {
        XChaCha20::new(key.into(), nonce.into()).apply_keystream(bytes);
    }

    pub(super) fn encrypt(
        by: Engine,
        key: &[u8; 32],
        nonce: &Nonce,
        associated: &[u8],
        bytes: &mut [u8],
    ) -> Option<Tag> {
        match by {
            Engine::Shipped => engine::encrypt(key, nonce, associated, bytes),
            Engine::Portable => rust_engine::encrypt(key, nonce, associated, bytes),
            Engine::WithoutIntegrity => {
                stream(key, nonce, bytes);
                Some(Tag::default())
            }
        }
    }

    pub(super) fn decrypt(
        by: Engine,
        key: &[u8; 32],
        nonce: &Nonce,
        associated: &[u8],
        bytes: &mut [u8],
        tag: &Tag,
    ) -> bool {
        match by {
            Engine::Shipped => engine::decrypt(key, nonce, associated, bytes, tag),
            Engine::Portable => rust_engine::decrypt(key, nonce, associated, bytes, tag),
            Engine::WithoutIntegrity => {
                stream(key, nonce, bytes);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize, seed: u8) -> Vec<u8> {
        (0..len).map(|at| (at as u8).wrapping_mul(167) ^ (at >> 8) as u8 ^ seed).collect()
    }

    /// draft-irtf-cfrg-xchacha-03, A.3.1; its tag covers all of it.
    #[test]
    fn the_published_vector_comes_out() {
        let key: [u8; 32] = std::array::from_fn(|at| 0x80 + at as u8);
        let nonce: Nonce = std::array::from_fn(|at| 0x40 + at as u8);
        let associated = [0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7];
        let plain = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
        let mut text = plain.to_vec();
        let tag = encrypt(&key, &nonce, &associated, &mut text);
        assert_eq!(text[..4], [0xbd, 0x6d, 0x17, 0x9d]);
        let expected = 0xc087_5924_c1c7_9879_47de_afd8_780a_cf49_u128;
        assert_eq!(u128::from_be_bytes(tag), expected);
        assert!(decrypt(&key, &nonce, &associated, &mut text, &tag));
        assert_eq!(text, plain);
    }

    #[test]
    fn both_engines_make_the_same_bytes() {
        for (round, (len, associated)) in
            [(0, 0), (0, 4144), (1, 48), (63, 1), (64, 48), (4095, 47), (4096, 48)].into_iter().enumerate()
        {
            let key: [u8; 32] = bytes(32, round as u8).try_into().unwrap();
            let nonce: Nonce = bytes(24, 99 - round as u8).try_into().unwrap();
            let (plain, associated) = (bytes(len, 7), bytes(associated, 1));
            let (mut ours, mut theirs) = (plain.clone(), plain.clone());
            let tag = encrypt(&key, &nonce, &associated, &mut ours);
            assert_eq!(rust_engine::encrypt(&key, &nonce, &associated, &mut theirs), Some(tag));
            assert_eq!(ours, theirs);
            assert!(decrypt(&key, &nonce, &associated, &mut ours, &tag));
            assert!(rust_engine::decrypt(&key, &nonce, &associated, &mut theirs, &tag));
            assert!(ours == plain && theirs == plain);
        }
    }

    #[cfg(feature = "__engines")]
    #[test]
    fn other_engines_are_for_benchmarks() {
        use super::choice::{self, Engine, chosen};
        let (key, nonce, plain) = ([3; 32], [5; 24], bytes(4096, 7));
        let sealed = |engine| {
            let mut text = plain.clone();
            let tag = choice::encrypt(engine, &key, &nonce, &[1], &mut text).unwrap();
            assert_ne!(text, plain, "{engine:?}");
            let mut wrong = text.clone();
            wrong[9] ^= 1;
            let passes = choice::decrypt(engine, &key, &nonce, &[1], &mut wrong, &tag);
            assert_eq!(passes, engine == Engine::WithoutIntegrity);
            assert!(
                choice::decrypt(engine, &key, &nonce, &[1], &mut text, &tag) && text == plain,
                "{engine:?}"
            );
            tag
        };
        assert_eq!(sealed(Engine::Shipped), sealed(Engine::Portable));
        assert_eq!(sealed(Engine::WithoutIntegrity), [0; 16]);
        assert_eq!(chosen(), Engine::Shipped);
    }

    #[test]
    fn a_bit_anywhere_is_noticed() {
        let (key, nonce) = ([3; 32], [5; 24]);
        let (mut text, associated) = (bytes(200, 7), bytes(48, 1));
        let tag = encrypt(&key, &nonce, &associated, &mut text);
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        for bit in 0..8 * text.len() {
            assert!(
                !decrypt(&key, &nonce, &associated, &mut flipped(&text, bit), &tag),
                "bit {bit} of the text"
            );
        }
        for bit in 0..8 * associated.len() {
            assert!(
                !decrypt(&key, &nonce, &flipped(&associated, bit), &mut text.clone(), &tag),
                "associated bit {bit}"
            );
        }
        for bit in 0..8 * 16 {
            let tag = flipped(&tag, bit).try_into().unwrap();
            assert!(!decrypt(&key, &nonce, &associated, &mut text.clone(), &tag), "bit {bit} of the tag");
        }
        for bit in 0..8 * 24 {
            let nonce = flipped(&nonce, bit).try_into().unwrap();
            assert!(!decrypt(&key, &nonce, &associated, &mut text.clone(), &tag), "bit {bit} of the nonce");
        }
        for bit in 0..8 * 32 {
            let key = flipped(&key, bit).try_into().unwrap();
            assert!(!decrypt(&key, &nonce, &associated, &mut text.clone(), &tag), "bit {bit} of the key");
        }
        assert!(decrypt(&key, &nonce, &associated, &mut text, &tag));
    }
}
