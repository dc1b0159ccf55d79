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
