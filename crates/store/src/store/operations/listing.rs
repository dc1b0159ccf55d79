//! All objects with their states: the table is held for a piece at a time, at constant cost per
//! object.

use super::inspect::{Looked, Status};
use crate::error::{Part, Result, StoreError};
use crate::format::entry::FLAG_HIDDEN;
use crate::format::root::TreeId;
use crate::medium::LockKey;
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::table::{Located, SlotFound};

impl Store {
    /// Offsets of the objects' entries, ascending.
    ///
    /// # Errors
    /// The table of names cannot be read.
    pub fn entries(&self) -> Result<Vec<u64>> {
        self.view(|table| {
            let count = table.root.trees[TreeId::Names as usize].count.get();
            // A damaged root may count more than there are.
            let mut all = Vec::with_capacity(count.min(1 << 24) as usize);
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

    /// Applies `show` to the objects at these entries; one result each: `None` if destroyed
    /// meanwhile or not `wanted`, an error if damaged or unreadable.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn statuses<T>(
        &self,
        entries: &[u64],
        wanted: Option<&dyn Fn(&str) -> bool>,
        show: impl Fn(&Located, &Status) -> T,
    ) -> Result<Vec<Option<Result<T>>>> {
        self.each_entry(entries, |table, looked, object| {
            if wanted.is_some_and(|wanted| !wanted(&object.entry.name())) {
                return None;
            }
            Some(self.status_in(table, object, looked).map(|status| show(object, &status)))
        })
    }

    /// Applies `show` to the objects at these entries, without damaged ones.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn objects<T>(&self, entries: &[u64], show: impl Fn(&Located) -> Option<T>) -> Result<Vec<T>> {
        let all = self.each_entry(entries, |_, _, object| show(object).map(Ok))?;
        Ok(all.into_iter().flatten().filter_map(Result::ok).collect())
    }

    fn each_entry<T>(
        &self,
        entries: &[u64],
        show: impl Fn(&TableTransaction<'_>, &mut Looked, &Located) -> Option<Result<T>>,
    ) -> Result<Vec<Option<Result<T>>>> {
        self.view(|table| {
            let mut looked = self.look_for_locks(entries)?;
            let mut all = Vec::with_capacity(entries.len());
            table.slots(entries, &mut |offset, found| {
                all.push(match found {
                    SlotFound::Used(object) if object.entry.has(FLAG_HIDDEN) => None,
                    SlotFound::Used(object) => show(table, &mut looked, &object),
                    SlotFound::Free => None,
                    SlotFound::Damaged => Some(Err(StoreError::damaged(Part::Entry, offset))),
                    SlotFound::Unreadable(error) => Some(Err(error.into())),
                });
                Ok(())
            })?;
            Ok(all)
        })
    }

    /// Later attaches change the table.
    fn look_for_locks(&self, entries: &[u64]) -> Result<Looked> {
        let (Some(&from), Some(&to)) = (entries.iter().min(), entries.iter().max()) else {
            return Ok(Looked::default());
        };
        let locked = self.device.may_have_locks(LockKey::Object(from), LockKey::Object(to))?;
        Ok(Looked::unlocked((!locked).then_some(from..=to)))
    }
}
