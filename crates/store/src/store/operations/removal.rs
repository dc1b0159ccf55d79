//! Removal of objects, at once or with the last attachment.
//!
//! One batch of the table removes or hides an object. A hidden object that nothing needs goes with
//! the process that deletes it, detaches it last, or calls [`Store::reap`]. After an unlock a
//! process looks for a deletion; after a deletion it tries the lock: one of the two removes it.

use crate::error::{Result, StoreError};
use crate::format::entry::{Entry, FLAG_DELETED, FLAG_HIDDEN, FLAG_TARGET};
use crate::medium::{LockMode, Medium, read_struct};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Key, Located};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attached {
    Refused,
    Hidden,
}

#[derive(Default)]
struct Removed {
    objects: u64,
    was_target: bool,
}

impl Store {
    /// Destroys an unattached object and frees its space and addresses; a snapshot with users, or
    /// an object tied to others, goes with the last of them.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`, `HeldStill`: nothing happened.
    pub fn destroy(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<()> {
        self.unless_held_still(|| self.remove_named(name, None, key, Attached::Refused))
    }

    /// As [`destroy`](Store::destroy), unless another object has the name.
    ///
    /// # Errors
    /// As for [`destroy`](Store::destroy); `NotFound` if the name's object has another ID.
    pub fn destroy_id(self: &Arc<Self>, name: &str, id: &[u8; 16], key: Key<'_>) -> Result<()> {
        self.unless_held_still(|| self.remove_named(name, Some(id), key, Attached::Refused))
    }

    /// Deletes an object, attached or not: its name is free. Attached processes continue; the last
    /// detach frees its space. It is not recovered if they die.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`: nothing happened.
    pub fn delete(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<()> {
        self.remove_named(name, None, key, Attached::Hidden)
    }

    fn remove_named(
        self: &Arc<Self>,
        name: &str,
        id: Option<&[u8; 16]>,
        key: Key<'_>,
        attached: Attached,
    ) -> Result<()> {
        self.remove(attached, |table| {
            let object = table.object(name)?;
            if id.is_some_and(|id| object.entry.id != *id) {
                return Err(StoreError::NotFound);
            }
            match object.opens_for_writing(key) {
                true => Ok(object),
                false => Err(StoreError::WrongKey),
            }
        })
    }

    fn remove(
        self: &Arc<Self>,
        attached: Attached,
        find: impl FnOnce(&TableTransaction<'_>) -> Result<Located>,
    ) -> Result<()> {
        let (gone, left) = self.update_then(
            |table| {
                let mut object = find(table)?;
                let object_lock = match self.take_alone(&object) {
                    Err(StoreError::Held { .. } | StoreError::HeldStill { .. })
                        if attached == Attached::Hidden =>
                    {
                        table.hide(&mut object)?;
                        return Ok((None, Some(object)));
                    }
                    taken => taken?,
                };
                if Mutant::DiscardFirst.is_on() {
                    let medium = table.pages().medium();
                    medium.zero(object.entry.primary_offset(), object.entry.extent_len())?;
                }
                if object.is_used_base() || table.is_tied(&object)? {
                    table.hide(&mut object)?;
                    return Ok((None, None));
                }
                let base = table.destroy(&object)?;
                Ok((Some((object, object_lock)), base))
            },
            |(gone, left)| {
                let gone = gone.map(|(object, _object_lock)| {
                    self.give_back_all(&object);
                    object
                });
                (gone, left)
            },
        )?;
        self.remove_behind(gone.as_ref(), left);
        Ok(())
    }

    /// Removes `left` and objects tied to `gone`, but those in use.
    pub(in crate::store) fn remove_behind(self: &Arc<Self>, gone: Option<&Located>, left: Option<Located>) {
        let _ = self.remove_left(left);
        if gone.is_some_and(|object| object.entry.has(FLAG_TARGET)) {
            let _ = self.reap();
        }
    }

    /// # Errors
    /// `NotFound`: not such an object. `Held`: a process of another machine has it.
    fn remove_gone_one(self: &Arc<Self>, id: &[u8; 16]) -> Result<()> {
        self.unless_held_still(|| {
            self.remove(Attached::Refused, |table| {
                let found = table.find_id(id)?.filter(|object| object.entry.is_gone(&self.identity.boot));
                found.filter(|object| !object.entry.has(FLAG_HIDDEN)).ok_or(StoreError::NotFound)
            })
        })
    }

    /// Removes unattached volatile objects of earlier boots; returns their number. Looks at all
    /// objects.
    ///
    /// # Errors
    /// Those of the table: earlier removals stay.
    pub fn remove_gone(self: &Arc<Self>) -> Result<u64> {
        let (mut removed, mut from) = (0, Some((0, 0)));
        while let Some(start) = from {
            let page = self.view(|table| table.list(start, 256))?;
            from = page.next;
            for object in page.objects.iter().filter(|object| object.entry.is_gone(&self.identity.boot)) {
                match self.remove_gone_one(&object.entry.id) {
                    Ok(()) => removed += 1,
                    Err(StoreError::NotFound | StoreError::Held { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(removed)
    }

    /// Calls `create`, and again after removing obstacles: a volatile object of that name, or all
    /// that are gone or unneeded.
    pub(in crate::store) fn with_way_made<R>(
        self: &Arc<Self>,
        name: &str,
        create: impl Fn() -> Result<R>,
    ) -> Result<R> {
        let error = match create() {
            Err(error) => error,
            created => return created,
        };
        let way_made = match &error {
            StoreError::Exists => {
                self.find(name).and_then(|object| self.remove_gone_one(&object.entry.id)).is_ok()
            }
            StoreError::NoRoom { .. } | StoreError::NoAddresses { .. } => {
                self.remove_gone().unwrap_or(0) + self.reap().unwrap_or(0) > 0
            }
            _ => false,
        };
        if way_made { create() } else { Err(error) }
    }

    fn take_alone(&self, object: &Located) -> Result<ObjectLock> {
        let object_lock = ObjectLock::take(&self.object_locks, object, LockMode::Exclusive)?;
        self.expect_not_held(object)?;
        Ok(object_lock)
    }

    /// Removes an unneeded hidden object, bases below, and objects tied to it; leaves one in use to
    /// [`reap`](Store::reap). Returns their number.
    pub(in crate::store) fn remove_left(self: &Arc<Self>, left: Option<Located>) -> Result<u64> {
        let Removed { objects, was_target } = self.remove_chain(left)?;
        Ok(objects + if was_target { self.reap()? } else { 0 })
    }

    fn remove_chain(self: &Arc<Self>, mut left: Option<Located>) -> Result<Removed> {
        let mut removed = Removed::default();
        while let Some(object) = left.take() {
            left = self.update_then(
                |table| {
                    let Some(object) = table.find_id(&object.entry.id)? else { return Ok(None) };
                    if !object.is_left() && !Mutant::BaseFreed.is_on() || table.is_tied(&object)? {
                        return Ok(None);
                    }
                    let object_lock =
                        match ObjectLock::try_take(&self.object_locks, &object, LockMode::Exclusive) {
                            Ok(Some(object_lock)) if self.expect_not_held(&object).is_ok() => {
                                Some(object_lock)
                            }
                            _ if Mutant::DeletedFreed.is_on() && object.entry.has(FLAG_DELETED) => None,
                            _ => return Ok(None),
                        };
                    let base = table.destroy(&object)?;
                    Ok(Some((object, base, object_lock)))
                },
                |gone| {
                    let (object, base, _object_lock) = gone?;
                    self.give_back_all(&object);
                    removed.objects += 1;
                    removed.was_target |= object.entry.has(FLAG_TARGET);
                    base
                },
            )?;
        }
        Ok(removed)
    }

    /// Removes hidden, unlocked objects that nothing needs; returns their number.
    ///
    /// # Errors
    /// Those of the table: earlier removals stay.
    pub fn reap(self: &Arc<Self>) -> Result<u64> {
        let mut reaped = 0;
        let mut again = true;
        while again {
            again = false;
            for object in self.view(|table| table.hidden())? {
                if object.is_left() {
                    let Removed { objects, was_target } = self.remove_chain(Some(object))?;
                    reaped += objects;
                    again |= was_target;
                }
            }
        }
        Ok(reaped)
    }

    pub(in crate::store) fn remove_if_deleted(self: &Arc<Self>, unlocked: &Located) {
        // A lockless look is cheap; a deleted object is looked at again.
        let epoch = self.latch.enter();
        let found = read_struct::<Entry>(&epoch, unlocked.offset);
        let (Ok(entry), Ok(())) = (found, epoch.check_writeback()) else { return };
        if !self.read_only && entry.id == unlocked.entry.id && entry.has(FLAG_DELETED) {
            let _ = self.remove_left(Some(Located { entry, ..*unlocked }));
        }
    }

    /// Discards its space.
    pub(in crate::store) fn give_back_all(&self, object: &Located) {
        for range in object.entry.ranges() {
            self.give_back(range.start, range.end - range.start);
        }
    }
}
