use super::Pool;
use crate::error::Result;
use indelible_store::table::Key;
pub use indelible_store::table::Tie;

impl Pool {
    /// Deletes an object, attached or not: its name is free. Attachments continue until the last
    /// detach frees its space; after a death [`collect`](Pool::collect) does.
    ///
    /// ```
    /// use indelible::{ErrorKind, Pool};
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// let mut scratch = pool.create_attached("scratch", 4096)?;
    /// pool.delete("scratch", b"")?; // it goes with this process, however that ends
    /// assert_eq!(pool.attach("scratch").unwrap_err().kind(), ErrorKind::NotFound);
    /// *scratch.root_mut::<u64>()? = 1;
    /// scratch.psync()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`: nothing happened.
    pub fn delete(&self, name: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.delete(name, Key(key))?));
        self.about("delete", name, result)
    }

    /// Ties an object to another one, which it then outlives: deleted or destroyed, it stays until
    /// the other one is gone. An object can have 4,096 ties.
    ///
    /// ```
    /// use indelible::Pool;
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// pool.create("index", 4096)?;
    /// pool.create("part", 4096)?;
    /// pool.tie("part", "index", b"")?;
    /// assert_eq!(pool.ties("part")?[0].name, "index");
    /// pool.delete("part", b"")?; // its bytes stay as long as the index does
    /// pool.destroy("index")?; // and go with it
    /// assert_eq!(pool.info()?.objects, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`: of either. `WrongKey`: `key` is not the write key of `name`. `TieCycle`: `to` is
    /// tied to `name`. `ObjectReadOnly`: `to` is a snapshot. `TooManyTies`. `NoRoom`.
    pub fn tie(&self, name: &str, to: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        self.about("tie objects to", to, inner.alive().and_then(|()| Ok(inner.store.find(to)?)))?;
        let result = inner.alive().and_then(|()| Ok(inner.store.tie(name, Key(key), to)?));
        self.about("tie", name, result)
    }

    /// Removes a tie; returns whether it existed. `from` is the other object's name as in
    /// [`ties`](Pool::ties), deleted or not.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`.
    pub fn untie(&self, name: &str, from: &str, key: &[u8]) -> Result<bool> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.untie(name, Key(key), from)?));
        self.about("untie", name, result)
    }

    /// The objects that an object is tied to, as far as they exist.
    ///
    /// # Errors
    /// `NotFound`; `Damaged`: the list is.
    pub fn ties(&self, name: &str) -> Result<Vec<Tie>> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.ties(name)?));
        self.about("list the ties of", name, result)
    }
}
