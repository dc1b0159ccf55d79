//! Keys with which an object is attached.

use crate::seal_key::SealKey;
use indelible::{Object, Pool, ReadObject, Result};
use pyo3::prelude::*;

/// An object's key, or an empty one, and the seal key of a sealed object.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    key: &'a [u8],
    seal: Option<&'a indelible::SealKey>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(key: Option<&'a [u8]>, seal: Option<&'a Bound<'_, SealKey>>) -> Self {
        Keys { key: key.unwrap_or_default(), seal: seal.map(|seal| &seal.get().key) }
    }

    /// Calls one function for plain objects, the other for sealed ones.
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

    pub(crate) fn attach(self, pool: &Pool, name: &str) -> Result<Object> {
        self.with(|key| pool.attach_with_key(name, key), |key, seal| pool.attach_sealed(name, key, seal))
    }

    /// Attaches for reading, and excludes writers.
    pub(crate) fn attach_locked(self, pool: &Pool, name: &str) -> Result<ReadObject> {
        self.with(
            |key| pool.attach_read_with_key(name, key),
            |key, seal| pool.attach_read_sealed(name, key, seal),
        )
    }

    /// Attaches the last psync, beside a writer.
    pub(crate) fn attach_beside(self, pool: &Pool, name: &str) -> Result<ReadObject> {
        self.with(
            |key| pool.attach_snapshot_with_key(name, key),
            |key, seal| pool.attach_snapshot_sealed(name, key, seal),
        )
    }

    /// The same at any address.
    pub(crate) fn attach_anywhere(self, pool: &Pool, name: &str) -> Result<ReadObject> {
        self.with(
            |key| pool.attach_snapshot_anywhere(name, key),
            |key, seal| pool.attach_snapshot_sealed_anywhere(name, key, seal),
        )
    }
}
