//! An extent that an object left when it moved, and that memory of this process may show.

use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::Located;
use std::sync::Arc;

/// Such an extent, as that of a hidden object.
pub(super) struct Former {
    pub(super) object: Located,
    pub(super) object_lock: ObjectLock,
}

impl Store {
    /// If it cannot be removed now, the next resize does.
    pub(super) fn remove_former(self: &Arc<Self>, Former { object, object_lock }: Former) {
        drop(object_lock);
        let _ = self.remove_left(Some(object));
    }
}
