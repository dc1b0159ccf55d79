//! An extent that a moved object left, and that this process's memory may show.

use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::Located;
use std::sync::Arc;

pub(super) struct Former {
    pub(super) object: Located,
    pub(super) object_lock: ObjectLock,
}

impl Store {
    /// The next resize removes it otherwise.
    pub(super) fn remove_former(self: &Arc<Self>, Former { object, object_lock }: Former) {
        drop(object_lock);
        let _ = self.remove_left(Some(object));
    }
}
