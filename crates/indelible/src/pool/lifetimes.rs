//! The end of objects, also of attached ones, and of those that others need.

use super::Pool;
use crate::error::Result;
use indelible_store::table::Key;
pub use indelible_store::table::Tie;

impl Pool {
    /// Deletes an object, attached or not. From now on its name is free, and attaches do not find
    /// it. Processes go on with their attachments until they detach, and psync as before; its space
    /// can be used again once the last of them has detached. If one of them dies meanwhile, its
    /// psyncs are not recovered: the space comes back with the next snapshot, copy or resize, with
    /// [`collect`](Pool::collect), or when a new object finds no room.
    ///
    /// A snapshot or object that others share pages with keeps its space until the last of those
    /// has gone.
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

    /// Ties an object to another one, which it then outlives: deleted or destroyed, it loses its
    /// name, but goes when the other one has gone, and when its last attachment has ended. An
    /// object can be tied to 4,096 others. A tie that is there already is none more.
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
    /// tied to `name`, directly or through others. `ObjectReadOnly`: `to` is a snapshot.
    /// `TooManyTies`. `NoRoom`.
    pub fn tie(&self, name: &str, to: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        self.about("tie objects to", to, inner.alive().and_then(|()| Ok(inner.store.find(to)?)))?;
        let result = inner.alive().and_then(|()| Ok(inner.store.tie(name, Key(key), to)?));
        self.about("tie", name, result)
    }

    /// Takes the tie of an object to another one back. That one is named as [`ties`](Pool::ties)
    /// names it, deleted or not. Returns whether there was one.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`.
    pub fn untie(&self, name: &str, from: &str, key: &[u8]) -> Result<bool> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.untie(name, Key(key), from)?));
        self.about("untie", name, result)
    }

    /// The objects that an object is tied to, as far as they are still there.
    ///
    /// # Errors
    /// `NotFound`; `Damaged`: the list is.
    pub fn ties(&self, name: &str) -> Result<Vec<Tie>> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.ties(name)?));
        self.about("list the ties of", name, result)
    }
}
