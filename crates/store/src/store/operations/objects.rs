use crate::entropy::{now, random_id};
use crate::error::{Result, SealError, StoreError};
use crate::format::PAGE;
use crate::format::entry::{Entry, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_POSITION_INDEPENDENT};
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::store::attachment::reach;
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located, Page};
use std::sync::Arc;

/// A part of a listing.
#[derive(Debug, Default)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Located>,
    /// Start of the next part; `None`: the end.
    pub next: Option<(u64, u64)>,
}

impl Store {
    /// Creates a detached object of zeros, in place of one of that name that [is
    /// gone](crate::format::entry::Entry::is_gone).
    pub fn create(self: &Arc<Self>, name: &str, how: &CreateOptions<'_>) -> Result<Located> {
        self.with_way_made(name, || self.create_unchecked(name, how))
    }

    pub(in crate::store) fn create_unchecked(&self, name: &str, how: &CreateOptions<'_>) -> Result<Located> {
        let (id, now) = (random_id()?, now());
        self.update(|table| {
            let object = table.create(name, id, now, &self.with_window(how))?;
            self.prepare_extent(table, &object, 0)?;
            Ok(object)
        })
    }

    pub(in crate::store) fn create_hidden(
        &self,
        name: &str,
        how: &CreateOptions<'_>,
    ) -> Result<(Located, ObjectLock)> {
        let (id, now) = (random_id()?, now());
        self.update(|table| {
            let object = table.create_hidden(name, id, now, how)?;
            self.prepare_extent(table, &object, 0)?;
            let object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
            Ok((object, object_lock))
        })
    }

    pub(in crate::store) fn with_window<'a>(&self, how: &CreateOptions<'a>) -> CreateOptions<'a> {
        CreateOptions { window: self.superblock.window_len.get(), ..*how }
    }

    /// With usable contents.
    ///
    /// # Errors
    /// `NotFound`, `ObjectFeature`; `VolatileGone`: it has none any more.
    pub(in crate::store) fn usable(&self, table: &TableTransaction<'_>, name: &str) -> Result<Located> {
        let object = table.object(name)?;
        match object.entry.is_gone(&self.identity.boot) && !Mutant::VolatileKept.is_on() {
            true => Err(StoreError::VolatileGone),
            false => Ok(object),
        }
    }

    /// Renames a detached object. The [writer](crate::store::Writer::rename) of an object sealed
    /// under its name renames it.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `BadName`, `Held`, `WrongKey`, `NameSealed`: nothing happened.
    pub fn rename(self: &Arc<Self>, name: &str, new: &str, key: Key<'_>) -> Result<()> {
        crate::table::check_name(new)?;
        if self.find(name)?.is_sealed() {
            // Recovers its key page.
            let _ = self.key_page(name, key);
        }
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
            if table.sealed_identity(&object)?.is_some_and(|sealed| sealed.is_of(&object.entry)) {
                return Err(SealError::NameSealed.into());
            }
            table.rename(&mut object, new)
        })
    }

    /// Sets whether an unattached object's contents depend on its addresses.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`.
    pub fn set_position_independent(self: &Arc<Self>, name: &str, key: Key<'_>, is: bool) -> Result<()> {
        self.unless_held_still(|| {
            self.update(|table| {
                let mut object = table.object(name)?;
                if !object.opens_for_writing(key) {
                    return Err(StoreError::WrongKey);
                }
                let _object_lock = ObjectLock::take(&self.object_locks, &object, LockMode::Exclusive)?;
                object.entry.set(FLAG_POSITION_INDEPENDENT, is);
                table.put_entry(&object)
            })
        })
    }

    /// Reserves `bytes` of addresses for an object, attached or not, to grow into.
    ///
    /// # Errors
    /// `NoAddresses`: those behind it are taken, or it has none of its own. `BadSize`: it has more.
    /// `NotFound`, `WrongKey`.
    pub fn set_reach(self: &Arc<Self>, name: &str, key: Key<'_>, bytes: u64) -> Result<()> {
        let bytes = bytes.min(1 << 46).next_multiple_of(PAGE);
        self.unless_held_still(|| {
            self.update(|table| {
                let mut object = table.object(name)?;
                if !object.opens_for_writing(key) {
                    return Err(StoreError::WrongKey);
                }
                let largest = object.entry.reserved.get();
                if object.entry.has(FLAG_FOREIGN) {
                    return Err(StoreError::NoAddresses { needed: bytes, largest });
                }
                if bytes < largest {
                    let why = "an object keeps the addresses that it has";
                    return Err(StoreError::BadSize { size: bytes, why });
                }
                table.stock_up(true)?;
                reach(table, &mut object, bytes)?;
                table.put_entry(&object)
            })
        })
    }

    /// The object of that name.
    pub fn find(&self, name: &str) -> Result<Located> {
        self.view(|table| table.find(name)?.ok_or(StoreError::NotFound))
    }

    /// The nearest base below an object for which `is` holds: the last snapshot made of it, or of
    /// the one that it was rolled back to.
    ///
    /// # Errors
    /// `NotFound`; a damaged base.
    pub fn nearest_base(&self, name: &str, is: impl Fn(&Entry) -> bool) -> Result<Option<Located>> {
        self.view(|table| {
            let object = table.find(name)?.ok_or(StoreError::NotFound)?;
            table.nearest_base(&object, &is)
        })
    }

    /// The object with that ID.
    pub fn find_id(&self, id: &[u8; 16]) -> Result<Located> {
        self.view(|table| table.find_id(id)?.ok_or(StoreError::NotFound))
    }

    /// The objects with these IDs, by one look at the table.
    ///
    /// # Errors
    /// The table cannot be read. `NotFound` for each ID without object.
    pub fn find_ids(&self, ids: &[[u8; 16]]) -> Result<Vec<Result<Located>>> {
        self.view(|table| {
            let found = ids.iter().map(|id| Ok(table.find_id(id)?.ok_or(StoreError::NotFound)));
            found.collect()
        })
    }

    /// Some of the objects, in the table's order, from `from` ((0, 0) at first) on.
    pub fn list(&self, from: (u64, u64), limit: usize) -> Result<Listing> {
        let Page { mut objects, next } = self.view(|table| table.list(from, limit))?;
        objects.retain(|object| !object.entry.has(FLAG_HIDDEN));
        Ok(Listing { objects, next })
    }
}
