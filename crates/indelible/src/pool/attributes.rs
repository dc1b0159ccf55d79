use super::Pool;
use crate::error::Result;
use indelible_store::table::Key;

impl Pool {
    /// Renames an unattached object.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `BadName`, `Held`, `WrongKey`.
    pub fn rename(&self, name: &str, new: &str, key: &[u8]) -> Result<()> {
        let inner = &self.inner;
        let result =
            inner.alive().and_then(|()| inner.patiently(|| Ok(inner.store.rename(name, new, Key(key))?)));
        self.about("rename", name, result)
    }

    /// Renames all objects whose names begin with `from` to begin with `to`, as one step; returns
    /// their number. None may be attached. About a thousand fit into one step.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("pool.pmo"), 16 << 20)?;
    /// # for name in ["logs/a", "logs/old/b"] { pool.create(name, 4096)?; }
    /// assert_eq!(pool.rename_directory("logs/", "archive/logs/", b"")?, 2);
    /// assert!(pool.stat("archive/logs/old/b").is_ok());
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`: no name begins with `from`; `BadName`: `to` begins with `from`, or a new name is
    /// invalid; `Exists`, `Held`, `WrongKey`; `Sealed`: use [`rename_sealed`](Pool::rename_sealed);
    /// `NoRoom`: too many. Nothing happened.
    pub fn rename_directory(&self, from: &str, to: &str, key: &[u8]) -> Result<u64> {
        let (inner, mut object) = (&self.inner, None);
        let rename = || {
            let done = inner.store.rename_directory(from, to, Key(key));
            done.map_err(|unmoved| {
                object = unmoved.object;
                unmoved.cause.into()
            })
        };
        let result = inner.alive().and_then(|()| inner.patiently(rename));
        match object {
            Some(object) => self.about("rename", &object, result),
            None => self.about("rename", from, result),
        }
    }

    /// Reserves addresses behind an object, as
    /// [`CreateOptions::reach`](crate::CreateOptions::reach) does; a heap uses them from its next
    /// attach or [`Heap::grow`](crate::Heap::grow) on.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::CreateOptions;
    ///
    /// pool.create_with("data", &CreateOptions::new(4096).reach(1 << 20))?;
    /// pool.set_reach("data", b"", 1 << 30)?;
    /// assert_eq!(pool.stat("data")?.reach, 1 << 30);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NoAddresses`: another object has them, or it is a snapshot. `BadSize`: it has more.
    /// `NotFound`, `WrongKey`.
    pub fn set_reach(&self, name: &str, key: &[u8], bytes: u64) -> Result<()> {
        let inner = &self.inner;
        let set = || {
            let entry = inner.store.find(name)?.entry;
            let bytes = entry.occupied(bytes).unwrap_or(u64::MAX);
            Ok(inner.store.set_reach(name, Key(key), bytes)?)
        };
        self.about("change the reach of", name, inner.alive().and_then(|()| inner.patiently(set)))
    }

    /// Declares whether the contents of an unattached object depend on its addresses: see
    /// [`CreateOptions::position_independent`](crate::CreateOptions::position_independent).
    ///
    /// # Errors
    /// `NotFound`, `Held`, `WrongKey`.
    pub fn set_position_independent(&self, name: &str, key: &[u8], is: bool) -> Result<()> {
        let inner = &self.inner;
        let set = || Ok(inner.store.set_position_independent(name, Key(key), is)?);
        self.about("change", name, inner.alive().and_then(|()| inner.patiently(set)))
    }
}
