//! Copies and snapshots that take no time: an object's extent becomes a base, on which the object and its copies rest.
//!
//! One batch of the table makes it real: the base's entry, and the object's, which has a new extent that nobody has written to. The
//! base's progress line and the bitmaps, none of which anybody uses before, are durable by then.
//!
//! Cost: of the object's size only the bitmap, a bit for each page. The new extent is as long as the object, and has blocks where it was
//! written to.

use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_BASE;
use crate::medium::{LockMode, clear_fresh, zero_fresh};
use crate::mutant::Mutant;
use crate::recovery::{Standing, clear_left, put_progress};
use crate::space::TableTransaction;
use crate::store::attachment::{renumber, undefined};
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located};
use std::sync::Arc;

impl Store {
    /// Keeps what an object that nobody has attached holds now, under another name: that object is read-only, has the same
    /// addresses, and takes no space but for what the first one changes from now on.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`: nothing happened.
    pub fn snapshot(self: &Arc<Self>, name: &str, key: Key<'_>, snapshot: &str) -> Result<Located> {
        self.reap()?;
        let (object, _object_lock) = self.unless_held_still(|| self.take_recovered(name, key))?;
        let (id, now) = (random_id()?, now());
        self.update(|table| {
            let mut object = table.entry(object.offset)?;
            self.freeze(table, &mut object, Some(snapshot), key, (id, now))
        })
    }

    /// Creates an object that holds what another one holds now, which nobody has attached, or which is a snapshot. It has the same
    /// addresses, so that pointers in it are right; a process attaches one of the two at a time. Keys and read-only are those of
    /// `how`; without keys it has those of the call, if the other one has any.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`: nothing happened.
    pub fn create_from(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        copy: &str,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        self.reap()?;
        let ids = (random_id()?, random_id()?);
        let now = now();
        let source = self.view(|table| table.object(name))?;
        if source.entry.has(FLAG_BASE) {
            return self.update(|table| {
                let mut base = table.object(name)?;
                if !base.opens_for_reading(key) {
                    return Err(StoreError::WrongKey);
                }
                if !base.entry.has(FLAG_BASE) {
                    return Err(StoreError::NotFound);
                }
                let how = how.with_keys_of(&base, key);
                self.rest_on(table, &mut base, copy, (ids.0, now), &how)
            });
        }
        let (object, _object_lock) = self.unless_held_still(|| self.take_recovered(name, key))?;
        self.update(|table| {
            let mut object = table.entry(object.offset)?;
            let how = how.with_keys_of(&object, key);
            let mut base = self.freeze(table, &mut object, None, Key::default(), (ids.1, now))?;
            self.rest_on(table, &mut base, copy, (ids.0, now), &how)
        })
    }

    /// Makes the extent of an object that the caller has, recovered, a base with these (ID, time of creation).
    fn freeze(
        &self,
        table: &mut TableTransaction<'_>,
        object: &mut Located,
        name: Option<&str>,
        key: Key<'_>,
        (id, now): ([u8; 16], u64),
    ) -> Result<Located> {
        let standing = Standing { direct: 0, ..Standing::in_line(&table.progress(object)?) };
        if let Some((from, to)) = undefined(table, object)? {
            clear_left(table.pages().medium(), &object.entry, from, to)?;
        }
        let keys = CreateOptions::default().with_keys_of(object, key);
        let base = table.freeze(object, name, id, now, &keys)?;
        renumber(table, object)?;
        table.put_entry(object)?;
        self.prepare_overlay(table, object)?;
        self.prove(table, &base, standing)?;
        Ok(base)
    }

    /// Adds an object that rests on the base.
    fn rest_on(
        &self,
        table: &mut TableTransaction<'_>,
        base: &mut Located,
        name: &str,
        (id, now): ([u8; 16], u64),
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        let standing = Standing::in_line(&table.progress(base)?);
        let object = table.create_on(base, name, id, now, how)?;
        self.prepare_overlay(table, &object)?;
        self.prove(table, &object, standing)?;
        Ok(object)
    }

    /// Clears the bitmap of an object that begins to rest on a base, and makes first writes to its extent safe.
    fn prepare_overlay(&self, table: &mut TableTransaction<'_>, object: &Located) -> Result<()> {
        let medium = table.pages().medium();
        let (start, len) = object.bitmap();
        zero_fresh(medium, start, len, table.root.virgin.get().saturating_sub(start).min(len))?;
        // Its bytes are of no account: a page is read there once it was written whole.
        clear_fresh(medium, object.entry.primary_offset(), object.entry.extent_len(), 0)?;
        table.raise_virgin((start + len).max(object.entry.primary_offset() + object.entry.extent_len()));
        Ok(())
    }

    /// Makes everything written so far, and the object's progress, durable before its entry is in force.
    fn prove(&self, table: &TableTransaction<'_>, object: &Located, standing: Standing) -> Result<()> {
        let medium = table.pages().medium();
        put_progress(medium, self.seed, object, &standing)?;
        if !Mutant::BaseUnproven.is_on() {
            medium.barrier()?;
        }
        Ok(())
    }

    /// Removes bases, one below the other, as long as nothing needs them. One that is attached is left for [`reap`](Store::reap).
    pub(in crate::store) fn remove_bases(self: &Arc<Self>, mut unused: Option<Located>) -> Result<u64> {
        let mut removed = 0;
        while let Some(base) = unused.take() {
            unused = self.update_then(
                |table| {
                    // The slot may be another object's by now.
                    let Some(base) = table.find_id(&base.entry.id)? else { return Ok(None) };
                    if !base.is_unused_base() && !Mutant::BaseFreed.is_on() {
                        return Ok(None);
                    }
                    let Ok(object_lock) = ObjectLock::take(&self.object_locks, &base, LockMode::Exclusive)
                    else {
                        return Ok(None);
                    };
                    let next = table.destroy(&base)?;
                    Ok(Some((base, next, object_lock)))
                },
                |gone| {
                    let (base, next, _object_lock) = gone?;
                    self.give_back_all(&base);
                    removed += 1;
                    next
                },
            )?;
        }
        Ok(removed)
    }

    /// Gives the space of an object that was destroyed back to the file system.
    pub(in crate::store) fn give_back_all(&self, object: &Located) {
        for range in object.entry.ranges() {
            self.give_back(range.start, range.end - range.start);
        }
    }
}
