//! Attaching shared objects: their bytes are in processes' shared memory, and the pool knows only
//! the holders.

use super::class::expect_class;
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_READ_ONLY;
use crate::medium::{LockMode, MediumError};
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Class, Key, Located};
use std::sync::Arc;

/// A shared object of this process; dropping it detaches.
pub struct Sharer {
    store: Arc<Store>,
    object: Located,
    object_lock: Option<ObjectLock>,
    alone: bool,
}

impl Store {
    /// Attaches `name` as one of its sharers. The first is [alone](Sharer::is_alone), to make
    /// missing memory, until it [lets others in](Sharer::let_others_in).
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`, `VolatileGone`, `ObjectReadOnly`, `ReadOnly`; `Mismatch` of
    /// its class.
    pub fn attach_sharer(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Sharer> {
        self.unless_held_still(|| {
            self.view(|table| {
                let object = self.usable(table, name)?;
                expect_class(&object, Class::Shared)?;
                if object.entry.has(FLAG_READ_ONLY) {
                    return Err(StoreError::ObjectReadOnly);
                }
                if !object.opens_for_writing(key) {
                    return Err(StoreError::WrongKey);
                }
                if self.read_only {
                    return Err(MediumError::ReadOnly.into());
                }
                let first = ObjectLock::try_take(&self.object_locks, &object, LockMode::Exclusive)?;
                let alone = first.is_some();
                let object_lock = match first {
                    Some(object_lock) => object_lock,
                    None => ObjectLock::take(&self.object_locks, &object, LockMode::Shared)?,
                };
                Ok(Sharer { store: self.clone(), object, object_lock: Some(object_lock), alone })
            })
        })
    }
}

impl Sharer {
    /// The object at the attach.
    #[must_use]
    pub fn object(&self) -> &Located {
        &self.object
    }

    /// Whether this is the only holder.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.alone
    }

    /// Lets others attach, once the memory exists.
    ///
    /// # Errors
    /// The system refuses.
    pub fn let_others_in(&mut self) -> Result<()> {
        if let Some(object_lock) = &self.object_lock {
            object_lock.share()?;
        }
        self.alone = false;
        Ok(())
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        if let Some(object_lock) = self.object_lock.take() {
            drop(object_lock);
            self.store.remove_if_deleted(&self.object);
        }
    }
}
