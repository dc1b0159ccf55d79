//! Poly1305 (RFC 8439, 2.5), and another message for a tag: a holder of the key can make one.

use chacha20::XChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};

/// A number below 2^130 - 5: (bits from 128 on, bits below).
type Number = (u128, u128);

/// 2^130 - 5, without its bits from 128 on.
const LOW: u128 = u128::MAX - 4;

fn reduced((mut high, mut low): Number) -> Number {
    while high >= 4 {
        let (sum, carry) = low.overflowing_add((high >> 2) * 5);
        (high, low) = ((high & 3) + u128::from(carry), sum);
    }
    if high == 3 && low >= LOW { (0, low - LOW) } else { (high, low) }
}

fn sum(a: Number, b: Number) -> Number {
    let (low, carry) = a.1.overflowing_add(b.1);
    reduced((a.0 + b.0 + u128::from(carry), low))
}

fn negative((high, low): Number) -> Number {
    let (low, borrow) = LOW.overflowing_sub(low);
    reduced((3 - high - u128::from(borrow), low))
}

fn product(a: Number, b: Number) -> Number {
    let bits = (0..2).rev().map(|bit| b.0 >> bit & 1).chain((0..128).rev().map(|bit| b.1 >> bit & 1));
    bits.fold((0, 0), |so_far, bit| {
        let twice = sum(so_far, so_far);
        if bit == 1 { sum(twice, a) } else { twice }
    })
}

fn inverse(a: Number) -> Number {
    let power = (3, LOW - 2);
    let bits = (0..2).rev().map(|bit| power.0 >> bit & 1).chain((0..128).rev().map(|bit| power.1 >> bit & 1));
    bits.fold((0, 1), |so_far, bit| {
        let square = product(so_far, so_far);
        if bit == 1 { product(square, a) } else { square }
    })
}

fn block(bytes: &[u8]) -> Number {
    (1, u128::from_le_bytes(bytes.try_into().expect("a block has 16 bytes")))
}

pub(crate) struct OneTime {
    r: Number,
    s: u128,
}

impl OneTime {
    pub(crate) fn of(key: &[u8; 32], nonce: &[u8; 24]) -> OneTime {
        let mut both = [0; 32];
        XChaCha20::new(key.into(), nonce.into()).apply_keystream(&mut both);
        let half = |at: usize| u128::from_le_bytes(both[at..at + 16].try_into().expect("a half"));
        OneTime { r: (0, half(0) & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff), s: half(16) }
    }

    fn evaluated(&self, message: &[u8]) -> Number {
        let blocks = message.chunks_exact(16).map(block);
        blocks.fold((0, 0), |so_far, block| product(sum(so_far, block), self.r))
    }

    #[cfg(test)]
    pub(crate) fn tag(&self, message: &[u8]) -> [u8; 16] {
        self.evaluated(message).1.wrapping_add(self.s).to_le_bytes()
    }

    /// Changes the block at `free` so that the message has this tag; `false`: impossible.
    pub(crate) fn forge(&self, message: &mut [u8], free: usize, tag: &[u8; 16]) -> bool {
        message[free..free + 16].fill(0);
        let without = self.evaluated(message);
        let behind = (message.len() - free) / 16;
        let factor = inverse((0..behind).fold((0, 1), |power, _| product(power, self.r)));
        let wanted = u128::from_le_bytes(*tag).wrapping_sub(self.s);
        for high in 0..4 {
            // The block was counted as zeros.
            let missing = sum(reduced((high, wanted)), negative(without));
            let (over, value) = product(missing, factor);
            if over == 0 && (high < 3 || wanted < LOW) {
                message[free..free + 16].copy_from_slice(&value.to_le_bytes());
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20poly1305::aead::{AeadInPlace, KeyInit};
    use chacha20poly1305::{XChaCha20Poly1305, XNonce};

    #[test]
    fn tags_are_those_of_the_cipher_and_messages_are_found_for_them() {
        let (key, nonce) = ([7; 32], [9; 24]);
        let one_time = OneTime::of(&key, &nonce);
        let associated: Vec<u8> = (0..96_u8).collect();
        let message = |text: &[u8]| [text, &96_u64.to_le_bytes(), &0_u64.to_le_bytes()].concat();
        let cipher = XChaCha20Poly1305::new(&key.into());
        let theirs =
            cipher.encrypt_in_place_detached(XNonce::from_slice(&nonce), &associated, &mut []).unwrap();
        let tag = one_time.tag(&message(&associated));
        assert_eq!(tag[..], theirs[..]);
        let found = (0..100).any(|attempt| {
            let mut other = message(&[attempt; 96]);
            let found = one_time.forge(&mut other, 48, &tag);
            assert!(!found || one_time.tag(&other) == tag);
            found
                && cipher
                    .decrypt_in_place_detached(XNonce::from_slice(&nonce), &other[..96], &mut [], &theirs)
                    .is_ok()
        });
        assert!(found);
    }
}
