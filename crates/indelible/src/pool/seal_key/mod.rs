//! Keys of sealed objects, and their sources. No key is a program's argument, or part of an error.

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

/// A key that opens sealed objects ([`CreateOptions::sealed`](crate::CreateOptions::sealed)).
/// Dropping overwrites it; errors and debug output do not show it.
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
    /// A key file's contents: 32 random bytes to 1 MiB.
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

    /// A passphrase. Opening its slot takes Argon2id with 64 MiB and three passes, some tenths of a
    /// second.
    ///
    /// # Errors
    /// `Sealed`: it is empty.
    pub fn passphrase(text: String) -> Result<SealKey> {
        made(|| seal::SealKey::passphrase(text))
    }

    /// Reads the passphrase in the file at `path`, without a final line break.
    ///
    /// # Errors
    /// `Io`: it cannot be read. `Sealed`: it is empty, or not UTF-8.
    pub fn passphrase_from_file(path: impl AsRef<Path>) -> Result<SealKey> {
        SealKey::passphrase(had(source::text(path.as_ref()))?)
    }

    /// Sets the cost of slots made with this passphrase. A much costlier slot opens only by a
    /// passphrase of that cost.
    ///
    /// # Errors
    /// `Sealed`: it is no passphrase, or the cost is out of bounds: 1 GiB, 16 passes and 16 lanes.
    pub fn costing(self, cost: Cost) -> Result<SealKey> {
        let key = made(|| self.key.clone().costing(cost))?.key;
        Ok(SealKey { key, ..self })
    }

    /// Adds the object's anchor: attaching a restored older state then fails
    /// ([`PoolBehind`](crate::ErrorKind::PoolBehind)). The object needs
    /// its anchor from the first attach for writing on.
    #[must_use]
    pub fn anchored(self, anchor: impl Anchor + 'static) -> SealKey {
        SealKey { anchor: Some(Arc::new(anchor)), ..self }
    }

    /// Removes the anchor.
    #[must_use]
    pub fn unanchored(self) -> SealKey {
        SealKey { anchor: None, ..self }
    }

    /// For an object that was sealed under `name`, and now has any name and ID: a copy, a snapshot,
    /// or one renamed without its key. For an object of an earlier release, use
    /// [`bind_name`](crate::Pool::bind_name).
    #[must_use]
    pub fn sealed_as(self, name: &str) -> SealKey {
        SealKey { key: self.key.sealed_as(name), ..self }
    }

    /// For an object of any name: exchanged objects of the same keys are not detected.
    #[must_use]
    pub fn of_any_name(self) -> SealKey {
        SealKey { key: self.key.of_any_name(), ..self }
    }

    /// A new object by this key file is *erasable*: it has this one key slot, and gets another key
    /// file by [`renew_key`](crate::Pool::renew_key) alone. Once its present and former key
    /// files are destroyed, no copy, snapshot or backup of it can be read.
    ///
    /// # Errors
    /// `Sealed`: it is a passphrase or a TPM.
    pub fn erasable(self) -> Result<SealKey> {
        let key = made(|| self.key.clone().erasable())?.key;
        Ok(SealKey { key, ..self })
    }

    /// Adds the key that signs the object: holders of the seal key alone can read it, not forge it.
    /// All changes of a signed object need the sign key; attaches for reading need it, or the one
    /// that [verifies](SealKey::verified_by).
    ///
    /// # Errors
    /// `Sealed`: it is the same key file.
    pub fn signed_by(self, key: &SignKey) -> Result<SealKey> {
        let made = self.key.signed_by(&key.0);
        let key = made.map_err(|error| Error::new("use a sign key", Cause::Store(error)))?;
        Ok(SealKey { key, ..self })
    }

    /// Adds the key that verifies the object's signature, which reading a signed object needs. An
    /// object without that signature is `Damaged`. Get the key over a trusted channel, never from
    /// the pool.
    #[must_use]
    pub fn verified_by(self, key: VerifyKey) -> SealKey {
        SealKey { key: self.key.verified_by(key.0), ..self }
    }

    /// Slots made with this key are refused from `expires` on. An object has at least one key that
    /// does not expire.
    ///
    /// Encryption knows no clock: to end an owner's access, remove the slot and [rotate the
    /// object's key](crate::Pool::reencrypt).
    #[must_use]
    pub fn until(self, expires: SystemTime) -> SealKey {
        let seconds = expires.duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
        SealKey { key: self.key.until(seconds), ..self }
    }

    /// The credential `name` that systemd gave to this service (`LoadCredential=`,
    /// `LoadCredentialEncrypted=`), a file in `CREDENTIALS_DIRECTORY`. Equals a key file of the
    /// same bytes.
    ///
    /// # Errors
    /// `Sealed`: there are no credentials, `name` has a `/`, or it is too short or too long. `Io`:
    /// it cannot be read.
    pub fn credential(name: &str) -> Result<SealKey> {
        SealKey::from_file(had(source::credential(name))?)
    }

    /// The standard output of a command that `/bin/sh` runs, killed after `timeout`. Equals a key
    /// file of the same bytes.
    ///
    /// # Errors
    /// `Sealed`: it cannot be started, fails, takes longer, or writes too little or too much. The
    /// error has its standard error, never its output.
    pub fn command(command: &str, timeout: Duration) -> Result<SealKey> {
        SealKey::file(had(command::output(command, "", timeout).map_err(KeySourceError::from))?)
    }

    /// The machine's TPM 2.0, `/dev/tpmrm0`, or a device or socket at `path`: every process with
    /// access to the TPM opens the object, and no other machine does. Add a second key: clearing
    /// the TPM loses its slots.
    ///
    /// # Errors
    /// `Sealed`: it cannot be opened. Attaching, or adding a key, fails with `Sealed` if it
    /// refuses, is locked, or was reset since.
    pub fn tpm(path: Option<&Path>) -> Result<SealKey> {
        let device = had(tpm::device(path))?;
        made(|| Ok(seal::SealKey::device(device)))
    }
}

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
