use super::Pool;
use crate::error::Result;

impl Pool {
    /// Extends the pool to `len` bytes, rounded down to whole pages; returns its length. A file
    /// grows sparsely; extend a device before this call.
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
    /// `BadSize`: the pool is longer, or its addresses, its device or the format do not allow that
    /// length. `NoSpace`: the file system does not. Nothing happened. `ReadOnly`. `Io`: the pool
    /// has one of the two lengths.
    pub fn grow(&self, len: u64) -> Result<u64> {
        let inner = &self.inner;
        let result = inner.alive().and_then(|()| Ok(inner.store.lengthen(len)?));
        result.map_err(|cause| self.error("grow", cause))
    }
}
