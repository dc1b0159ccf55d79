//! Objects read in place beside their writer, without space and locks.
//!
//! The bytes in place under the lane's lines up to psync `n` are the object at psync `n`, except
//! where later psyncs changed bytes in place. So callers read only bytes that do not change again,
//! such as a log's records.

use super::tail::{Followed, Tail};
use crate::error::Result;
use crate::store::pool::Store;
use crate::table::Located;
use std::sync::Arc;

/// An object read in place.
pub struct InPlace {
    store: Arc<Store>,
    tail: Tail,
}

impl InPlace {
    pub(in crate::store) fn new(store: &Arc<Store>, tail: Tail) -> InPlace {
        InPlace { store: store.clone(), tail }
    }

    /// The object at the attach.
    #[must_use]
    pub fn object(&self) -> &Located {
        self.tail.object()
    }

    /// Looks for psyncs in the lane since the last call; the first call looks from the last
    /// checkpoint on. `Lost`: the lane cannot tell, or the object moved.
    pub fn follow(&mut self) -> Followed {
        let Ok(Some((found, lines))) = self.store.read_tail(&self.tail) else { return Followed::Lost };
        let newer = found.shown() != self.tail.shown();
        self.tail = found;
        if newer { Followed::Newer(lines) } else { Followed::Newest }
    }

    /// Reads bytes in place; `false`: the object moved.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<bool> {
        // Under the lock nothing is freed.
        self.store.view(|table| {
            let now = table.entry(self.tail.object().offset).ok().filter(|now| self.tail.is_there(now));
            now.map_or(Ok(false), |now| table.read_object(&now, offset, bytes).map(|()| true))
        })
    }
}
