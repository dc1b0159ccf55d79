//! Attributes of objects that exist.

use super::Pool;
use crate::error::Result;
use indelible_store::table::Key;

impl Pool {
    /// Gives an object that nobody has attached another name.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `BadName`, `Held`, `WrongKey`.
    pub fn rename(&self, name: &str, new: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let result =
            inner.alive().and_then(|()| inner.patiently(|| Ok(inner.store.rename(name, new, Key(key))?)));
        self.about("rename", name, result)
    }

    /// Keeps so many bytes of addresses for an object to grow into, as [`CreateOptions::reach`](crate::CreateOptions::reach) does for a new one: addresses that are free behind those that it has. A heap
    /// that is attached has them from its next attach on, or after [`Heap::grow`](crate::Heap::grow). Growing an object by a call takes addresses as it needs them.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::CreateOptions;
    ///
    /// pool.create_with("data", &CreateOptions::new(4096).reach(1 << 20))?;
    /// pool.set_reach("data", b"", 1 << 30)?;
    /// assert_eq!(pool.stat("data")?.reach, 1 << 30);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `NoAddresses`: those behind it are another object's, or it is a snapshot, which has those of its object. `BadSize`: it has more. `NotFound`, `WrongKey`.
    pub fn set_reach(&self, name: &str, key: &[u8], bytes: u64) -> Result<()> {
        let inner = &self.inner;
        let set = || {
            let entry = inner.store.find(name)?.entry;
            let bytes = entry.occupied(bytes).unwrap_or(u64::MAX);
            Ok(inner.store.set_reach(name, Key(key), bytes)?)
        };
        self.about("change the reach of", name, inner.alive().and_then(|()| inner.patiently(set)))
    }

    /// Says whether anything in an object that nobody has attached depends on its addresses, as [`CreateOptions::position_independent`](crate::CreateOptions::position_independent) does of a new one. Its
    /// snapshots and copies of before keep what was said of it then.
    ///
    /// # Errors
    /// `NotFound`, `Held`, `WrongKey`.
    pub fn set_position_independent(&self, name: &str, key: &[u8], is: bool) -> Result<()> {
        let inner = &self.inner;
        let set = || Ok(inner.store.set_position_independent(name, Key(key), is)?);
        self.about("change", name, inner.alive().and_then(|()| inner.patiently(set)))
    }
}
