//! Keys of sealed objects.

use super::Anchor;
use crate::error::{Cause, Error, Result};
use indelible_store::seal::{self, Cost};
use std::sync::Arc;

/// A key that opens sealed objects ([`CreateOptions::sealed`](crate::CreateOptions::sealed)). It is overwritten when it is dropped, and neither
/// errors nor debug output show it.
#[derive(Clone, Debug)]
pub struct SealKey(pub(crate) seal::SealKey, pub(crate) Option<Arc<dyn Anchor>>);

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

    /// The same key with the object's anchor: an object that is put back as a whole, with or without the pool, to an older state is then an error of the attach
    /// ([`PoolBehind`](crate::ErrorKind::PoolBehind)).
    ///
    /// The first attach for writing records the object in the anchor, and notes in the object that it has one: it is not attached without from then on. The anchor is told of the newest
    /// state by attach, checkpoint and detach, and by a psync if its [interval](Anchor::interval) has passed. If the process dies, states between the record and the newest one are not
    /// told apart; after a detach there is one state that is accepted.
    #[must_use]
    pub fn anchored(self, anchor: impl Anchor + 'static) -> SealKey {
        SealKey(self.0, Some(Arc::new(anchor)))
    }
}

fn made(key: Result<seal::SealKey, indelible_store::error::StoreError>) -> Result<SealKey> {
    key.map(|key| SealKey(key, None)).map_err(|error| Error::new("use a seal key", Cause::Store(error)))
}
