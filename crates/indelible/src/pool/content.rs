//! Objects whose ID is the hash of their bytes (S2.1).

use super::Pool;
use crate::error::Result;
use indelible_store::table::Key;

/// An object found or made by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByContent {
    /// Its ID: the hash of the content.
    pub id: [u8; 16],
    /// Whether this call made it.
    pub made: bool,
}

impl Pool {
    /// Creates a read-only, position-independent object with these bytes and their hash as ID, the
    /// first 16 bytes of SHA-256, or returns the present one, of any name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// let greeting = pool.create_by_content("greeting", b"hello")?;
    /// let same = pool.create_by_content("the same", b"hello")?; // under its first name
    /// assert!(greeting.made && !same.made && greeting.id == same.id);
    /// assert_eq!(pool.stat("greeting")?.id, greeting.id);
    /// assert!(pool.stat("the same").is_err());
    /// assert_eq!(pool.attach_read("greeting")?.as_slice(), b"hello");
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Exists`: another object has the name. `Damaged`: the present object has other bytes.
    /// `Held`: a deleted object has that ID, or a process is making it. `BadSize` of no bytes;
    /// `BadName`, `NoRoom`, `NoSpace`, `NoAddresses`.
    pub fn create_by_content(&self, name: &str, content: &[u8]) -> Result<ByContent> {
        let inner = &self.inner;
        let make = || Ok(inner.store.create_by_content(name, content)?);
        let made = inner.alive().and_then(|()| inner.patiently(make));
        let (object, made) = self.about("create", name, made)?;
        Ok(ByContent { id: object.entry.id, made })
    }

    /// Whether an object's ID is the hash of its bytes. `None`: its ID is no hash.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`.
    pub fn verify_content(&self, name: &str, key: &[u8]) -> Result<Option<bool>> {
        let inner = &self.inner;
        let verify = || Ok(inner.store.verify_content(name, Key(key))?);
        let verified = inner.alive().and_then(|()| inner.patiently(verify));
        self.about("verify", name, verified)
    }
}
