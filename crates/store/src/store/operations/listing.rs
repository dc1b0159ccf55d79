//! All objects of a pool with their states, for pools with very many: the table is held for a piece at a
//! time, and what an object costs does not grow with their number.

use super::inspect::{Looked, Status};
use crate::error::{Part, Result, StoreError};
use crate::format::entry::FLAG_HIDDEN;
use crate::format::root::TreeId;
use crate::store::pool::Store;
use crate::table::{Located, SlotFound};

impl Store {
    /// Offsets of the objects' entries, ascending.
    ///
    /// # Errors
    /// The table of names cannot be read.
    pub fn entries(&self) -> Result<Vec<u64>> {
        self.view(|table| {
            let mut all = Vec::new();
            table.walk(TreeId::Names, &mut |_, level, slots| {
                if level == 0 {
                    all.extend(slots.iter().map(|slot| slot.value.get()));
                }
                Ok(())
            })?;
            all.sort_unstable();
            Ok(all)
        })
    }

    /// The objects whose entries are at these offsets, with their states. One destroyed meanwhile is left
    /// out, one that is damaged or cannot be read is an error of its own.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn statuses(&self, entries: &[u64]) -> Result<Vec<Result<(Located, Status)>>> {
        self.view(|table| {
            let mut looked = Looked::default();
            let mut all = Vec::with_capacity(entries.len());
            for offset in entries {
                let object = match table.slot(*offset) {
                    SlotFound::Used(object) => *object,
                    // Destroyed since.
                    SlotFound::Free => continue,
                    SlotFound::Damaged => {
                        all.push(Err(StoreError::damaged(Part::Entry, *offset)));
                        continue;
                    }
                    SlotFound::Unreadable(error) => {
                        all.push(Err(error.into()));
                        continue;
                    }
                };
                if !object.entry.has(FLAG_HIDDEN) {
                    all.push(self.status_in(table, &object, &mut looked).map(|status| (object, status)));
                }
            }
            Ok(all)
        })
    }
}
