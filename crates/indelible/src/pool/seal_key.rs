//! Keys of sealed objects.

use crate::error::{Cause, Error, Result};
use indelible_store::seal::{self, Cost};

/// A key that opens sealed objects ([`CreateOptions::sealed`](crate::CreateOptions::sealed)). It is overwritten when it is dropped, and neither
/// errors nor debug output show it.
#[derive(Clone, Debug)]
pub struct SealKey(pub(crate) seal::SealKey);

impl SealKey {
    /// The contents of a key file: 32 random bytes or more, 1 MiB at most.
    ///
    /// # Errors
    /// `Sealed`: too short, or too long.
    pub fn file(contents: Vec<u8>) -> Result<SealKey> {
        made(seal::SealKey::file(contents))
    }

    /// A passphrase. Opening an object by it takes Argon2id with 64 MiB and three passes, some tenths of a second, for each slot that is one.
    ///
    /// # Errors
    /// `Sealed`: it is empty.
    pub fn passphrase(text: String) -> Result<SealKey> {
        made(seal::SealKey::passphrase(text))
    }

    /// As [`passphrase`](SealKey::passphrase); slots that are made with it ask for so much work.
    ///
    /// # Errors
    /// `Sealed`: it is empty, or the work is out of bounds.
    pub fn passphrase_at(text: String, cost: Cost) -> Result<SealKey> {
        made(seal::SealKey::passphrase_at(text, cost))
    }
}

fn made(key: Result<seal::SealKey, indelible_store::error::StoreError>) -> Result<SealKey> {
    key.map(SealKey).map_err(|error| Error::new("use a seal key", Cause::Store(error)))
}
