//! Lives: objects that stand for a process or a thread, for others to be tied to.
//!
//! A life is a hidden object without contents, whose lock its process has. So the kernel ends it
//! with the process, however that ends, and objects tied to it go as with any other object: with
//! the process that ends it, or with the next [`reap`](Store::reap).

use crate::error::{Result, StoreError};
use crate::mutant::Mutant;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located};
use std::sync::Arc;

/// See the module. Dropping it ends it.
pub struct Life {
    store: Arc<Store>,
    object: Located,
    object_lock: Option<ObjectLock>,
}

impl Store {
    /// Begins a life. `name` tells people whose it is; no name leads to it.
    ///
    /// # Errors
    /// `BadName`; `NoRoom`, `NoAddresses`: nothing happened.
    pub fn begin_life(self: &Arc<Self>, name: &str) -> Result<Life> {
        let how = CreateOptions { size: 1, ..CreateOptions::default() };
        self.with_way_made(name, || {
            let (object, object_lock) = self.create_hidden(name, &how)?;
            let object_lock = Some(object_lock).filter(|_| !Mutant::LifeUnlocked.is_on());
            Ok(Life { store: self.clone(), object, object_lock })
        })
    }
}

impl Life {
    /// Ties the object `name` to it: that one is there at least as long as this life goes on.
    ///
    /// # Errors
    /// As for [`Store::tie`].
    pub fn keep(&self, name: &str, key: Key<'_>) -> Result<()> {
        self.store
            .tie_to(name, key, |table| table.find_id(&self.object.entry.id)?.ok_or(StoreError::NotFound))
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.object_lock = None;
        // If it cannot be removed now, the next `reap` does.
        let _ = self.store.remove_left(Some(self.object));
    }
}
