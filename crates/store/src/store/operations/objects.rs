//! Objects as a whole: create, destroy, find, list.

use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_HIDDEN;
use crate::format::root::TreeId;
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located, Page};
use std::sync::Arc;

/// A part of a listing: `next` says where the following part starts.
#[derive(Debug, Default)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Located>,
    /// Give this to the next call; `None` at the end.
    pub next: Option<(u64, u64)>,
}

impl Store {
    /// Creates an object. It is detached, and reads as zeros.
    pub fn create(self: &Arc<Self>, name: &str, how: &CreateOptions<'_>) -> Result<Located> {
        self.create_unchecked(name, how)
    }

    pub(in crate::store) fn create_unchecked(&self, name: &str, how: &CreateOptions<'_>) -> Result<Located> {
        let (id, now) = (random_id()?, now());
        self.update(|table| {
            let object = table.create(name, id, now, &self.with_window(how))?;
            self.prepare_extent(table, &object, 0)?;
            Ok(object)
        })
    }

    /// The same, for a table that is to know whether addresses are plenty.
    pub(in crate::store) fn with_window<'a>(&self, how: &CreateOptions<'a>) -> CreateOptions<'a> {
        CreateOptions { window: self.superblock.window_len.get(), ..*how }
    }

    /// Destroys an object nobody has attached. Its space and addresses are free.
    pub fn destroy(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<()> {
        self.unless_held_still(|| self.destroy_now(name, key))
    }

    fn destroy_now(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<()> {
        let unused = self.update_then(
            |table| {
                let mut object = table.object(name)?;
                if !object.opens_for_writing(key) {
                    return Err(StoreError::WrongKey);
                }
                let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
                self.expect_not_held(&object)?;
                if Mutant::DiscardFirst.is_on() {
                    let medium = table.pages().medium();
                    medium.zero(object.entry.primary_offset(), object.entry.extent_len())?;
                }
                if object.is_used_base() {
                    // Others rest on it: with the last of them it goes.
                    table.unname(&mut object)?;
                    return Ok(None);
                }
                let base = table.destroy(&object)?;
                Ok(Some((object, base, object_lock)))
            },
            |gone| {
                let (object, base, _object_lock) = gone?;
                self.give_back_all(&object);
                base
            },
        )?;
        // The object is gone: a base that cannot be removed now is removed by the next resize or snapshot.
        let _ = self.remove_bases(unused);
        Ok(())
    }

    /// Changes the name of an object nobody has attached.
    pub fn rename(self: &Arc<Self>, name: &str, new: &str, key: Key<'_>) -> Result<()> {
        crate::table::check_name(new)?;
        self.unless_held_still(|| self.rename_now(name, new, key))
    }

    fn rename_now(&self, name: &str, new: &str, key: Key<'_>) -> Result<()> {
        self.update(|table| {
            let mut object = table.object(name)?;
            if !object.opens_for_writing(key) {
                return Err(StoreError::WrongKey);
            }
            if table.find(new)?.is_some() {
                return Err(StoreError::Exists);
            }
            let _object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
            table.stock_up(true)?;
            table.remove(TreeId::Names, (table.name_hash(name), object.offset))?;
            object.entry.set_name(new);
            table.insert(TreeId::Names, (table.name_hash(new), object.offset), object.offset)?;
            table.put_entry(&object)
        })
    }

    /// The object of that name.
    pub fn find(&self, name: &str) -> Result<Located> {
        self.view(|table| table.find(name)?.ok_or(StoreError::NotFound))
    }

    /// The object with that ID.
    pub fn find_id(&self, id: &[u8; 16]) -> Result<Located> {
        self.view(|table| table.find_id(id)?.ok_or(StoreError::NotFound))
    }

    /// Some of the pool's objects, in no order a person would see, from `from` ((0, 0) at first) on.
    pub fn list(&self, from: (u64, u64), limit: usize) -> Result<Listing> {
        let Page { mut objects, next } = self.view(|table| table.list(from, limit))?;
        objects.retain(|object| !object.entry.has(FLAG_HIDDEN));
        Ok(Listing { objects, next })
    }
}
