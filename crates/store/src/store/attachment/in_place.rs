//! Objects that are read where they lie, beside their writer: the reader takes no space and no
//! lock.
//!
//! The bytes in place, with the lines of the psyncs that the writer's lane has up to psync `n` laid
//! over them, are the object as psync `n` left it: checkpoints put the lines of all others in place
//! before the lane loses them. Later psyncs may have changed bytes in place as well. So the caller
//! reads only bytes that no later psync changes, such as the records of a log.

use super::tail::{Followed, Tail};
use crate::error::Result;
use crate::store::pool::Store;
use crate::table::Located;
use std::sync::Arc;

/// See the module.
pub struct InPlace {
    store: Arc<Store>,
    tail: Tail,
}

impl InPlace {
    pub(in crate::store) fn new(store: &Arc<Store>, tail: Tail) -> InPlace {
        InPlace { store: store.clone(), tail }
    }

    /// The object, as the table had it when this was attached.
    #[must_use]
    pub fn object(&self) -> &Located {
        self.tail.object()
    }

    /// Looks for psyncs that the lane has since the last call, or since the last checkpoint before
    /// the first one. `Lost`: the lane does not tell, or the object lies elsewhere.
    pub fn follow(&mut self) -> Followed {
        let Ok(Some((found, lines))) = self.store.read_tail(&self.tail) else { return Followed::Lost };
        let newer = found.shown() != self.tail.shown();
        self.tail = found;
        if newer { Followed::Newer(lines) } else { Followed::Newest }
    }

    /// Reads bytes in place, from `offset` on. `false`: the object lies elsewhere.
    ///
    /// # Errors
    /// Those of the medium and the table.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<bool> {
        // Nothing is given back while the table is locked.
        self.store.view(|table| {
            let now = table.entry(self.tail.object().offset).ok().filter(|now| self.tail.is_there(now));
            now.map_or(Ok(false), |now| table.read_object(&now, offset, bytes).map(|()| true))
        })
    }
}
