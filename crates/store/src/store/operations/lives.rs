//! Lives: hidden, empty objects, locked by their process and ending with it, to which others are
//! tied. Tied objects go then, or with the next [`reap`](Store::reap).

use crate::error::{Result, StoreError};
use crate::mutant::Mutant;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located};
use std::sync::Arc;

/// A life; dropping it ends it.
pub struct Life {
    store: Arc<Store>,
    object: Located,
    object_lock: Option<ObjectLock>,
}

impl Store {
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
    /// Ties the object `name` to this life, which it outlives.
    pub fn keep(&self, name: &str, key: Key<'_>) -> Result<()> {
        self.store
            .tie_to(name, key, |table| table.find_id(&self.object.entry.id)?.ok_or(StoreError::NotFound))
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.object_lock = None;
        let _ = self.store.remove_left(Some(self.object));
    }
}
