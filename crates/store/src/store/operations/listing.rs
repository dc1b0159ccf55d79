//! All objects with their states: the table is held for a piece at a time, at constant cost per
//! object.

use super::inspect::{Looked, Status};
use crate::error::{Part, Result, StoreError};
use crate::format::entry::{Entry, FLAG_HIDDEN, MAGIC};
use crate::format::node::Slot;
use crate::format::root::TreeId;
use crate::medium::LockKey;
use crate::space::TableTransaction;
use crate::store::pool::Store;
use crate::table::{Located, SlotFound, name_hash};

/// An object's entry, as the tree of names has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Offset of the entry.
    pub offset: u64,
    /// Hash of its name.
    pub hash: u64,
}

/// Tells by a name whether an object is meant.
pub type Wanted<'w> = &'w dyn Fn(&str) -> bool;

impl Store {
    /// The objects' entries, ascending by offset.
    ///
    /// # Errors
    /// The table of names cannot be read.
    pub fn entries(&self) -> Result<Vec<Listed>> {
        self.view(|table| {
            let count = table.root.trees[TreeId::Names as usize].count.get();
            // A damaged root may count more than there are.
            let mut all = Vec::with_capacity(count.min(1 << 24) as usize);
            table.walk(TreeId::Names, &mut |_, level, slots| {
                if level == 0 {
                    let listed = |slot: &Slot| Listed { offset: slot.value.get(), hash: slot.key().0 };
                    all.extend(slots.iter().map(listed));
                }
                Ok(())
            })?;
            all.sort_unstable();
            Ok(all)
        })
    }

    /// Applies `show` to the objects at these entries; one result each: `None` if destroyed
    /// meanwhile or not `wanted`, an error if damaged or unreadable. An unwanted object's name is
    /// proved by its hash in the tree, and nothing else of it is read.
    ///
    /// # Errors
    /// The table cannot be read.
    pub fn statuses<T>(
        &self,
        entries: &[Listed],
        wanted: Option<Wanted<'_>>,
        show: impl Fn(&Located, &Status) -> T,
    ) -> Result<Vec<Option<Result<T>>>> {
        self.each_entry(entries, wanted, |table, looked, object| {
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
    pub fn objects<T>(&self, entries: &[Listed], show: impl Fn(&Located) -> Option<T>) -> Result<Vec<T>> {
        let all = self.each_entry(entries, None, |_, _, object| show(object).map(Ok))?;
        Ok(all.into_iter().flatten().filter_map(Result::ok).collect())
    }

    fn each_entry<T>(
        &self,
        entries: &[Listed],
        wanted: Option<Wanted<'_>>,
        show: impl Fn(&TableTransaction<'_>, &mut Looked, &Located) -> Option<Result<T>>,
    ) -> Result<Vec<Option<Result<T>>>> {
        let offsets: Vec<u64> = entries.iter().map(|entry| entry.offset).collect();
        self.view(|table| {
            let skips = |nth: usize, entry: &Entry| {
                wanted.is_some_and(|wanted| {
                    is_called(table.seed(), entry, entries[nth].hash, |name| !wanted(name))
                })
            };
            let mut looked = self.look_for_locks(&offsets)?;
            let mut all = Vec::with_capacity(entries.len());
            table.slots_unless(&offsets, &skips, &mut |offset, found| {
                all.push(match found {
                    Some(SlotFound::Used(object)) if object.entry.has(FLAG_HIDDEN) => None,
                    Some(SlotFound::Used(object)) => show(table, &mut looked, &object),
                    Some(SlotFound::Damaged) => Some(Err(StoreError::damaged(Part::Entry, offset))),
                    Some(SlotFound::Unreadable(error)) => Some(Err(error.into())),
                    Some(SlotFound::Free) | None => None,
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

/// Whether an unproved entry has a name with this hash, which `fits`.
fn is_called(seed: u64, entry: &Entry, hash: u64, fits: impl FnOnce(&str) -> bool) -> bool {
    let name = entry.name_bytes();
    entry.magic.get() == MAGIC
        && std::str::from_utf8(name).is_ok_and(|name| name_hash(seed, name) == hash && fits(name))
}
