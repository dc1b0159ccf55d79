//! Objects whose ID is the hash of their bytes (S2.1).

use super::Pool;
use crate::error::Result;
use indelible_store::table::Key;

/// The object that holds some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ByContent {
    /// Its ID: their hash.
    pub id: [u8; 16],
    /// Whether it was made for them just now.
    pub made: bool,
}

impl Pool {
    /// Creates a read-only object that holds these bytes, and whose ID is their hash: the first 16
    /// bytes of SHA-256. If there is one with that ID already, of any name, it is that one; its
    /// bytes were compared. So the same bytes are one object in a pool, and far pointers to it mean
    /// the same in all pools that have it.
    ///
    /// The object is there as a whole, or not at all, and nothing in it depends on its addresses.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// let greeting = pool.create_by_content("greeting", b"hello")?;
    /// let same = pool.create_by_content("the same", b"hello")?; // under its first name
    /// assert!(greeting.made && !same.made && greeting.id == same.id);
    /// assert_eq!(pool.stat("greeting")?.id, greeting.id);
    /// assert!(pool.stat("the same").is_err());
    /// assert_eq!(pool.attach_read("greeting")?.as_slice(), b"hello");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `Exists`: another object has the name. `Damaged`: the present object has other bytes.
    /// `Held`: a deleted one with that ID is attached still, or another process is making it.
    /// `BadSize` of no bytes; `BadName`, `NoRoom`, `NoSpace`, `NoAddresses`.
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
