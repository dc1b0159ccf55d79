//! Keys with which an object is attached.

use crate::seal_key::SealKey;
use indelible::{Object, Pool, ReadObject, Result};
use pyo3::prelude::*;

/// The key of an object, empty if it has none, and of a sealed one a seal key.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    key: &'a [u8],
    seal: Option<&'a indelible::SealKey>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(key: Option<&'a [u8]>, seal: Option<&'a Bound<'_, SealKey>>) -> Self {
        Keys { key: key.unwrap_or_default(), seal: seal.map(|seal| &seal.get().key) }
    }

    /// Calls the function for objects that are not sealed, or the one for those that are.
    pub(crate) fn with<T>(
        self,
        plain: impl FnOnce(&[u8]) -> Result<T>,
        sealed: impl FnOnce(&[u8], &indelible::SealKey) -> Result<T>,
    ) -> Result<T> {
        match self.seal {
            Some(seal) => sealed(self.key, seal),
            None => plain(self.key),
        }
    }

    /// Attaches for storing.
    pub(crate) fn attach(self, pool: &Pool, name: &str) -> Result<Object> {
        self.with(|key| pool.attach_with_key(name, key), |key, seal| pool.attach_sealed(name, key, seal))
    }

    /// Attaches for reading, which keeps writers away.
    pub(crate) fn attach_locked(self, pool: &Pool, name: &str) -> Result<ReadObject> {
        self.with(
            |key| pool.attach_read_with_key(name, key),
            |key, seal| pool.attach_read_sealed(name, key, seal),
        )
    }

    /// Attaches the state of the last psync, beside a writer.
    pub(crate) fn attach_beside(self, pool: &Pool, name: &str) -> Result<ReadObject> {
        self.with(
            |key| pool.attach_snapshot_with_key(name, key),
            |key, seal| pool.attach_snapshot_sealed(name, key, seal),
        )
    }

    /// The same where the kernel likes.
    pub(crate) fn attach_anywhere(self, pool: &Pool, name: &str) -> Result<ReadObject> {
        self.with(
            |key| pool.attach_snapshot_anywhere(name, key),
            |key, seal| pool.attach_snapshot_sealed_anywhere(name, key, seal),
        )
    }
}
