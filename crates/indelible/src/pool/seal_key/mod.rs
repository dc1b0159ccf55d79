//! Keys of sealed objects, and the places that they come from. No key is an argument of a program,
//! and none is in an error.

mod memory;
mod sign;
mod source;
mod tpm;

use super::anchor::Anchor;
use super::command;
use crate::error::{Cause, Error, KeySourceError, Result};
use indelible_store::error::StoreError;
use indelible_store::seal::{self, Cost};
pub use sign::{SignKey, VerifyKey};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A key that opens sealed objects ([`CreateOptions::sealed`](crate::CreateOptions::sealed)). It is
/// overwritten when it is dropped, and neither errors nor debug output show it.
#[derive(Clone)]
pub struct SealKey {
    pub(crate) key: seal::SealKey,
    pub(crate) anchor: Option<Arc<dyn Anchor>>,
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)?;
        f.write_str(if self.anchor.is_some() { ", anchored" } else { "" })
    }
}

impl SealKey {
    /// The contents of a key file: 32 random bytes or more, 1 MiB at most.
    ///
    /// # Errors
    /// `Sealed`: too short, or too long.
    pub fn file(contents: Vec<u8>) -> Result<SealKey> {
        made(|| seal::SealKey::file(contents))
    }

    /// Reads the key file at `path`, all of whose bytes count.
    ///
    /// # Errors
    /// `Io`: it cannot be read. `Sealed`: too short, or too long.
    pub fn from_file(path: impl AsRef<Path>) -> Result<SealKey> {
        SealKey::file(had(source::contents(path.as_ref()))?)
    }

    /// A passphrase. Opening an object by it takes Argon2id with 64 MiB and three passes, some
    /// tenths of a second, for each slot that is one.
    ///
    /// # Errors
    /// `Sealed`: it is empty.
    pub fn passphrase(text: String) -> Result<SealKey> {
        made(|| seal::SealKey::passphrase(text))
    }

    /// Reads the passphrase in the file at `path`; a line break at its end does not count.
    ///
    /// # Errors
    /// `Io`: it cannot be read. `Sealed`: it is empty, or not UTF-8.
    pub fn passphrase_from_file(path: impl AsRef<Path>) -> Result<SealKey> {
        SealKey::passphrase(had(source::text(path.as_ref()))?)
    }

    /// The same passphrase at another cost: slots that are made with it ask for so much work. A
    /// slot may be forged, so one that asks for more than 256 MiB, or for five times the work of
    /// the default, is opened only by a passphrase of that cost.
    ///
    /// # Errors
    /// `Sealed`: it is no passphrase, or the cost is out of bounds: 1 GiB, 16 passes and 16 lanes.
    pub fn costing(self, cost: Cost) -> Result<SealKey> {
        let key = made(|| self.key.clone().costing(cost))?.key;
        Ok(SealKey { key, ..self })
    }

    /// The same key with the object's anchor: an object that is put back as a whole, with or
    /// without the pool, to an older state is then an error of the attach
    /// ([`PoolBehind`](crate::ErrorKind::PoolBehind)).
    ///
    /// The first attach for writing records the object in the anchor, and notes in the object that
    /// it has one: it is not attached without from then on. The anchor is told of the newest state
    /// by attach, checkpoint and detach, and by a psync if its [interval](Anchor::interval) has
    /// passed. If the process dies, states between the record and the newest one are not told
    /// apart; after a detach there is one state that is accepted.
    #[must_use]
    pub fn anchored(self, anchor: impl Anchor + 'static) -> SealKey {
        SealKey { anchor: Some(Arc::new(anchor)), ..self }
    }

    /// The same key without an anchor.
    #[must_use]
    pub fn unanchored(self) -> SealKey {
        SealKey { anchor: None, ..self }
    }

    /// The same key, for an object that was sealed under `name`, with any name and ID of its own: a
    /// copy or a snapshot of that one, an object that came back under another name, or one that was
    /// renamed without its key. Without this, an object is refused that was sealed under another
    /// name than the one that is asked for, or as another object: two objects of the same keys may
    /// have been exchanged. With it, an object is refused whose root has no name, as those of an
    /// earlier release ([`bind_name`](crate::Pool::bind_name)).
    #[must_use]
    pub fn sealed_as(self, name: &str) -> SealKey {
        SealKey { key: self.key.sealed_as(name), ..self }
    }

    /// The same key, for an object of any name: two objects of the same keys that were exchanged
    /// are not told apart.
    #[must_use]
    pub fn of_any_name(self) -> SealKey {
        SealKey { key: self.key.of_any_name(), ..self }
    }

    /// The same key, with the one that signs the object. An object that is created with it is
    /// signed: a holder of the seal key alone reads it, and cannot forge it. Attaches for writing,
    /// and all other changes of the object, take the sign key from then on; those for reading that,
    /// or the one that [verifies](SealKey::verified_by).
    ///
    /// # Errors
    /// `Sealed`: it is the same key file.
    pub fn signed_by(self, key: &SignKey) -> Result<SealKey> {
        let made = self.key.signed_by(&key.0);
        let key = made.map_err(|error| Error::new("use a sign key", Cause::Store(error)))?;
        Ok(SealKey { key, ..self })
    }

    /// The same key, with the one that verifies the object's signature. An object without that
    /// signature is refused as `Damaged`, and reading a signed object takes such a key. Get it over
    /// a trusted channel, never from the pool.
    #[must_use]
    pub fn verified_by(self, key: VerifyKey) -> SealKey {
        SealKey { key: self.key.verified_by(key.0), ..self }
    }

    /// The same key: slots that are made with it are refused from `expires` on, with their label
    /// and date. An object has at least one key that does not expire.
    ///
    /// This is a guard rail, as no clock is part of the encryption: other software, or a clock that
    /// is wrong, opens the slot for good. To end an owner's access, remove the slot and [give the
    /// object another key](crate::Pool::reencrypt).
    #[must_use]
    pub fn until(self, expires: SystemTime) -> SealKey {
        let seconds = expires.duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
        SealKey { key: self.key.until(seconds), ..self }
    }

    /// The credential `name` that systemd gave to this service (`LoadCredential=`,
    /// `LoadCredentialEncrypted=`): the file of that name in the folder that the environment
    /// variable `CREDENTIALS_DIRECTORY` names. It opens the same slots as a key file of the same
    /// bytes.
    ///
    /// # Errors
    /// `Sealed`: there are no credentials, `name` has a `/`, or it is too short or too long. `Io`:
    /// it cannot be read.
    pub fn credential(name: &str) -> Result<SealKey> {
        SealKey::from_file(had(source::credential(name))?)
    }

    /// The standard output of a command, which `/bin/sh` runs: a key service, say, or a smart card.
    /// It opens the same slots as a key file of the same bytes. The command has no standard input;
    /// it is killed after `timeout`.
    ///
    /// # Errors
    /// `Sealed`: it cannot be started, fails, takes longer, or writes too little or too much. The
    /// error has its standard error, never its output.
    pub fn command(command: &str, timeout: Duration) -> Result<SealKey> {
        SealKey::file(had(command::output(command, "", timeout).map_err(KeySourceError::from))?)
    }

    /// The TPM 2.0 of this machine, `/dev/tpmrm0`, or a device or a socket at another path. A slot
    /// that is made with it has a random secret, sealed under the storage key of the TPM's owner
    /// hierarchy, which has no password: a copy of the pool does not open elsewhere, and every
    /// process that may use the TPM opens the object. Take a second key, elsewhere: a TPM that is
    /// cleared, or a machine that is gone, takes its slots along.
    ///
    /// # Errors
    /// `Sealed`: it cannot be opened. Attaching, or adding a key, fails with `Sealed` if it
    /// refuses, is locked, or was reset since.
    pub fn tpm(path: Option<&Path>) -> Result<SealKey> {
        let device = had(tpm::device(path))?;
        made(|| Ok(seal::SealKey::device(device)))
    }
}

/// Makes a key of a secret, which is kept out of core dumps and swap from here on.
fn made(key: impl FnOnce() -> Result<seal::SealKey, StoreError>) -> Result<SealKey> {
    made_of("use a seal key", key).map(|key| SealKey { key, anchor: None })
}

fn made_of<K>(what: &'static str, key: impl FnOnce() -> Result<K, StoreError>) -> Result<K> {
    seal::keep_secrets_in(memory::keep);
    key().map_err(|error| Error::new(what, Cause::Store(error)))
}

fn had<T>(found: Result<T, KeySourceError>) -> Result<T> {
    found.map_err(|error| Error::new("get the seal key", error))
}
