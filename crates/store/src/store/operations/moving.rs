//! Objects that leave a pool, locked until they are gone.

use super::boundary::Right;
use crate::error::Result;
use crate::recovery::Standing;
use crate::store::locks::ObjectLock;
use crate::store::operations::Attributes;
use crate::store::pool::Store;
use crate::table::{Key, Layers, Located, read_pages};
use std::sync::Arc;

/// A leaving object; dropping it lets it stay.
pub struct Leaving {
    store: Arc<Store>,
    object: Located,
    layers: Option<Layers>,
    standing: Standing,
    object_lock: ObjectLock,
}

impl Store {
    /// Locks and recovers an unattached object that is to leave.
    ///
    /// # Errors
    /// `NotFound`, `Held`, `WrongKey`; `ObjectReadOnly` of a snapshot.
    pub fn begin_leaving(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Leaving> {
        let (object, object_lock) =
            self.unless_held_still(|| self.take_recovered(name, Right::Write, key))?;
        let (layers, standing) =
            self.view(|table| Ok((table.layers(&object)?, Standing::in_line(&table.progress(&object)?))))?;
        Ok(Leaving { store: self.clone(), object, layers, standing, object_lock })
    }
}

impl Leaving {
    /// Attributes that another pool needs.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        let Standing { published, psyncs, .. } = self.standing;
        Attributes { published, psyncs, ..Attributes::of(&self.object) }
    }

    /// Reads bytes of its extent, undefined behind the published ones.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        Ok(read_pages(&*self.store.device, &self.object, self.layers.as_ref(), offset, bytes)?)
    }

    /// Removes it. Its snapshots and copies stay; its ties, and those of others to it, end.
    ///
    /// # Errors
    /// Those of the table: it still exists.
    pub fn remove(self) -> Result<()> {
        let Leaving { store, object, object_lock, .. } = self;
        let base = store.update_then(
            |table| table.destroy(&table.entry(object.offset)?),
            |base| {
                store.give_back_all(&object);
                drop(object_lock);
                base
            },
        )?;
        store.remove_behind(Some(&object), base);
        Ok(())
    }
}
