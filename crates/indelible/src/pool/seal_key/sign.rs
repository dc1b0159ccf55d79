use super::{had, made_of, source};
use crate::error::Result;
use indelible_store::seal;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The key that signs an object ([`SealKey::signed_by`](super::SealKey::signed_by)): its holders
/// write the object; holders of seal keys alone read it. Dropping overwrites it; errors and debug
/// output do not show it.
#[derive(Clone, Debug)]
pub struct SignKey(pub(crate) seal::SignKey);

impl SignKey {
    /// A key file's contents: 32 random bytes to 1 MiB, not those of a seal key.
    ///
    /// # Errors
    /// `Sealed`: too short, or too long.
    pub fn file(contents: Vec<u8>) -> Result<SignKey> {
        made_of("use a sign key", || seal::SignKey::file(contents)).map(SignKey)
    }

    /// Reads the key file at `path`, all of whose bytes count.
    ///
    /// # Errors
    /// `Io`: it cannot be read. `Sealed`: too short, or too long.
    pub fn from_file(path: impl AsRef<Path>) -> Result<SignKey> {
        SignKey::file(had(source::contents(path.as_ref()))?)
    }

    /// The key that verifies this one's signatures.
    #[must_use]
    pub fn verify_key(&self) -> VerifyKey {
        VerifyKey(self.0.verify_key())
    }
}

/// The key that verifies signatures of a [`SignKey`]
/// ([`SealKey::verified_by`](super::SealKey::verified_by)). Its text, by `Display` and `FromStr`,
/// is 64 hexadecimal digits. No secret, but get it over a trusted channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyKey(pub(crate) seal::VerifyKey);

impl VerifyKey {
    /// Reads the file at `path`, which has the text.
    ///
    /// # Errors
    /// `Io`: it cannot be read. `Sealed`: it is none.
    pub fn from_file(path: impl AsRef<Path>) -> Result<VerifyKey> {
        had(source::text(path.as_ref()))?.parse()
    }
}

impl fmt::Display for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for VerifyKey {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<VerifyKey> {
        made_of("use a verify key", || Ok(text.parse::<seal::VerifyKey>()?)).map(VerifyKey)
    }
}
