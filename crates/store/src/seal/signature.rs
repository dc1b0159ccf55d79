//! Signatures of roots: holders of a seal key read a signed object, only holders of its sign key
//! change it.
//!
//! A holder of the seal key can find another page for a tag, so seals also have hashes. Readers get
//! the verify key from elsewhere, never from the object.

use super::hex::{hex, unhex};
use super::secret::{LONGEST, SHORTEST, Secret, scrub_stack_deep};
use crate::error::{Result, SealError};
use crate::format::seal::{SIGNATURE_LEN, Seal};
use crate::mutant::Mutant;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use zerocopy::IntoBytes;
use zeroize::Zeroizing;

pub(super) type Signed = [u8; SIGNATURE_LEN];

const SIGN_KEY: &[u8] = b"indelible sign key 1";
const ROOT: &[u8] = b"indelible root 1";

/// A key that signs objects. Dropping it overwrites it, and no error or debug output shows it.
#[derive(Clone)]
pub struct SignKey {
    seed: Arc<Secret>,
    public: VerifyKey,
}

impl fmt::Debug for SignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignKey(of {})", self.public)
    }
}

impl SignKey {
    /// A key file's contents: at least 32 random bytes, other than the seal key's.
    ///
    /// # Errors
    /// `BadKey`: too short, or too long.
    pub fn file(contents: Vec<u8>) -> Result<SignKey> {
        let contents = Zeroizing::new(contents);
        let why = "a sign key file has from 32 bytes, which should be random, to 1 MiB";
        if !(SHORTEST..=LONGEST).contains(&contents.len()) {
            return Err(SealError::BadKey { why }.into());
        }
        Ok(SignKey::of(&contents))
    }

    pub(super) fn of(contents: &[u8]) -> SignKey {
        let mut digest = Sha256::new().chain_update(SIGN_KEY).chain_update(contents).finalize();
        let seed = Secret::take(&mut digest);
        let public = VerifyKey(SigningKey::from_bytes(seed.key()).verifying_key().to_bytes());
        scrub_stack_deep();
        SignKey { seed: Arc::new(seed), public }
    }

    /// The public half.
    #[must_use]
    pub fn verify_key(&self) -> VerifyKey {
        self.public
    }

    fn sign(&self, message: &[u8]) -> Signed {
        let signature = SigningKey::from_bytes(self.seed.key()).sign(message).to_bytes();
        scrub_stack_deep();
        signature
    }
}

/// Verifies a [`SignKey`]'s signatures; as text, 64 hexadecimal digits. Get it over a trusted
/// channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyKey([u8; 32]);

impl fmt::Display for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for VerifyKey {
    type Err = SealError;

    fn from_str(text: &str) -> std::result::Result<VerifyKey, SealError> {
        let why = "a verify key is 64 hexadecimal digits, as `pmo key verifier` shows them of a sign key";
        let bytes = unhex(text.trim()).ok_or(SealError::BadKey { why })?;
        let usable = VerifyingKey::from_bytes(&bytes).is_ok_and(|key| !key.is_weak());
        if usable { Ok(VerifyKey(bytes)) } else { Err(SealError::BadKey { why: "it is no verify key" }) }
    }
}

impl VerifyKey {
    fn verifies(&self, message: &[u8], signature: &Signed) -> bool {
        let key = VerifyingKey::from_bytes(&self.0);
        key.is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
    }
}

/// An object's accepted signer: the verify key and, for writers, the sign key.
#[derive(Clone, Debug)]
pub struct Signer {
    verify: VerifyKey,
    sign: Option<SignKey>,
}

impl From<SignKey> for Signer {
    fn from(key: SignKey) -> Signer {
        Signer { verify: key.public, sign: Some(key) }
    }
}

impl From<VerifyKey> for Signer {
    fn from(verify: VerifyKey) -> Signer {
        Signer { verify, sign: None }
    }
}

impl Signer {
    pub(super) fn verify_key(&self) -> VerifyKey {
        self.verify
    }

    pub(crate) fn signs(&self) -> bool {
        self.sign.is_some()
    }

    pub(super) fn sign(&self, head: &[u8], root: &Seal) -> Result<Signed> {
        let key = self.sign.as_ref().ok_or(SealError::SignKeyNeeded)?;
        Ok(key.sign(&message(head, root)))
    }

    /// Refuses a signed object of an unknown signer, or without the known one's signature.
    /// `signed`: the claimed signature.
    pub(super) fn judge(
        signer: Option<&Signer>,
        (head, root): (&[u8], &Seal),
        signed: Option<&Signed>,
    ) -> Result<()> {
        match (signed, signer) {
            (None, None) => Ok(()),
            (Some(_), None) => Err(SealError::VerifyKeyNeeded.into()),
            (None, Some(_)) => Err(SealError::NotSigned.into()),
            (Some(signed), Some(signer)) => {
                let is_its = signer.verify.verifies(&message(head, root), signed);
                if is_its || Mutant::SignatureUnchecked.is_on() {
                    Ok(())
                } else {
                    Err(SealError::BadSignature.into())
                }
            }
        }
    }
}

fn message(head: &[u8], root: &Seal) -> Vec<u8> {
    [ROOT, head, root.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_keys_are_read_as_they_are_shown_and_others_are_refused() {
        let key = SignKey::file(vec![7; 32]).unwrap().verify_key();
        let text = key.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(format!(" {text}\n").parse::<VerifyKey>().unwrap(), key);
        assert_eq!(text.to_uppercase().parse::<VerifyKey>().unwrap(), key);
        // A point of order 1 needs no key.
        let weak = format!("01{}", "00".repeat(31));
        for other in [
            "",
            "0",
            &text[1..],
            &format!("{text}00"),
            &text.replace(|c: char| c.is_ascii_digit(), "x"),
            &weak,
        ] {
            assert!(other.parse::<VerifyKey>().is_err(), "{other}");
        }
    }

    /// RFC 8032, 7.1.
    #[test]
    fn the_published_vector_comes_out() {
        let seed: [u8; 32] =
            unhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60").unwrap();
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        let signature: Signed = unhex(
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        )
        .unwrap();
        let verify: VerifyKey = public.parse().unwrap();
        let key = SignKey { seed: Arc::new(Secret::take(&mut seed.clone())), public: verify };
        assert_eq!(key.sign(b""), signature);
        assert!(verify.verifies(b"", &signature));
        assert!(!verify.verifies(b"x", &signature));
    }

    #[test]
    fn every_bit_of_a_signature_and_of_what_is_signed_counts() {
        let key = SignKey::file(vec![7; 32]).unwrap();
        let (verify, text) = (key.verify_key(), [3_u8; 24]);
        let signature = key.sign(&text);
        assert!(verify.verifies(&text, &signature));
        for bit in 0..8 * SIGNATURE_LEN {
            let mut other = signature;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify.verifies(&text, &other), "bit {bit} of the signature");
        }
        for bit in 0..8 * text.len() {
            let mut other = text;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!verify.verifies(&other, &signature), "bit {bit} of the text");
        }
    }

    #[test]
    fn a_sign_key_shows_nothing_of_itself() {
        assert!(SignKey::file(vec![7; 31]).is_err());
        let key = SignKey::file(vec![7; 32]).unwrap();
        let shown = format!("{key:?}");
        assert!(!shown.contains(&hex(key.seed.key())[..16]), "{shown}");
    }
}
