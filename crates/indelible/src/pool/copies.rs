//! Copies and snapshots that take no time.

use super::{CreateOptions, Pool};
use crate::error::Result;
use indelible_store::table::Key;

impl Pool {
    /// Creates an object `copy` that holds what `name` holds now, which nobody has attached, or which is a snapshot. It takes no
    /// time, whatever the size: both take the pages that they have not changed from what is common to them. The first change of
    /// such a page writes the page whole. The pool needs a free piece as large as the object, or two if `name` is no snapshot, of which
    /// only what changes takes space of the file system.
    ///
    /// Both have the same addresses, so that pointers in them are right; a process attaches one of the two at a time. Size and
    /// reach are those of `name`; keys, and whether the copy is read-only, are as in `options`, the keys those of this call if
    /// `name` has any and `options` says none.
    ///
    /// ```
    /// use indelible::{CreateOptions, Pool};
    ///
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// pool.create("list", 100_000)?;
    /// let mut list = pool.attach("list")?;
    /// list.as_mut_slice()[..5].copy_from_slice(b"first");
    /// list.psync()?;
    /// list.detach()?;
    /// pool.create_from("list", "trial", b"", &CreateOptions::new(0))?;
    /// let mut trial = pool.attach("trial")?;
    /// trial.as_mut_slice()[..5].copy_from_slice(b"other");
    /// trial.psync()?;
    /// trial.detach()?;
    /// assert_eq!(&pool.attach("list")?.as_slice()[..5], b"first");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`: nothing happened.
    pub fn create_from(&self, name: &str, copy: &str, key: &[u8], options: &CreateOptions) -> Result<()> {
        let inner = &self.inner;
        let made = || Ok(inner.store.create_from(name, Key(key), copy, &options.as_store())?);
        let result = inner.alive().and_then(|()| inner.patiently(made));
        self.about("copy", name, result.map(drop))
    }

    /// Keeps what `name` holds now, which nobody has attached, under another name: that object can be attached for reading, and
    /// be the source of [`create_from`](Pool::create_from). It takes no time, whatever the size. The pool needs a free piece as large as the
    /// object, of which only what `name` changes from now on takes space of the file system.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`: nothing happened.
    pub fn snapshot(&self, name: &str, snapshot: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let made = || Ok(inner.store.snapshot(name, Key(key), snapshot)?);
        let result = inner.alive().and_then(|()| inner.patiently(made));
        self.about("snapshot", name, result.map(drop))
    }
}
