//! Pools that become longer.

use super::Pool;
use crate::error::Result;

impl Pool {
    /// Makes the pool `len` bytes long, rounded down to whole pages; returns its length. All
    /// processes that have it open go on, and have the new space as soon as an object needs it. A
    /// file becomes longer at its end, which takes no space before objects do; a device is as long
    /// as it is, so that this follows once it has been made longer. Durable on return: a crash
    /// leaves the old length, or the new one.
    ///
    /// Objects that were created before keep their address space
    /// ([`Stat::reach`](crate::Stat::reach)), which is several times the length that the pool had
    /// then, while addresses are plenty; [`set_reach`](Pool::set_reach) keeps more.
    ///
    /// ```
    /// use indelible::{ErrorKind, Pool};
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// assert_eq!(pool.create("large", 20 << 20).unwrap_err().kind(), ErrorKind::NoRoom);
    /// pool.grow(64 << 20)?;
    /// pool.create("large", 20 << 20)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BadSize`: the pool is longer already, or its addresses, its device or the format allow no
    /// such length. `NoSpace`: the file system has no files of that length. Nothing happened then.
    /// `ReadOnly`. `Io`: the pool has one of both lengths.
    pub fn grow(&self, len: u64) -> Result<u64> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.lengthen(len)?));
        result.map_err(|cause| self.error("grow", cause))
    }
}
