use super::Pool;
use crate::error::Result;
pub use indelible_store::table::Class;
use indelible_store::table::Key;

impl Pool {
    /// Changes the durability class of an unattached object; its bytes stay.
    ///
    /// ```
    /// use indelible::{Class, ErrorKind, Pool};
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// let mut accounts = pool.create_attached("accounts", 4096)?;
    /// accounts.root_mut::<[u64; 8]>()?.fill(100); // plain stores, as long as its class allows them
    /// accounts.psync()?;
    /// accounts.detach()?;
    /// pool.set_class("accounts", b"", Class::Transactional)?;
    /// assert_eq!(pool.attach("accounts").unwrap_err().kind(), ErrorKind::ClassMismatch);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `ClassMismatch`: sealed and sparse objects have one class, and only volatile ones can be
    /// shared. `Held`, `NotFound`, `WrongKey`; `ObjectReadOnly` for a snapshot. Nothing happened.
    pub fn set_class(&self, name: &str, key: &[u8], class: Class) -> Result<()> {
        let inner = &self.inner;
        let set = || {
            let before = inner.store.find(name)?;
            inner.store.set_class(name, Key(key), class)?;
            inner.remove_shared_memory(&before);
            Ok(())
        };
        let result = inner.alive().and_then(|()| inner.patiently(set));
        self.about("set the class of", name, result)
    }

    /// Sets whether plain loads outside of transactions see an unattached object: see
    /// [`CreateOptions::readable_outside`](crate::CreateOptions::readable_outside).
    ///
    /// # Errors
    /// `ClassMismatch`: the object is neither transactional nor on demand, or it has check words.
    /// `Held`, `NotFound`, `WrongKey`; `ObjectReadOnly` for a snapshot. Nothing happened.
    pub fn set_readable_outside(&self, name: &str, key: &[u8], readable: bool) -> Result<()> {
        let inner = &self.inner;
        let set = || Ok(inner.store.set_readable_outside(name, Key(key), readable)?);
        self.about("change", name, inner.alive().and_then(|()| inner.patiently(set)))
    }
}
