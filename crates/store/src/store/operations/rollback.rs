//! Rollback: one batch of the table rests an object on the snapshot, with a bitmap without own
//! pages. A long enough extent stays. Nothing that the object had is overwritten before.

use super::boundary::Right;
use crate::error::{Result, StoreError};
use crate::format::LINE;
use crate::format::entry::{FLAG_BASE, FLAG_READ_ONLY, FLAG_TYPED};
use crate::lane::Batch;
use crate::medium::clear_fresh;
use crate::mutant::Mutant;
use crate::recovery::Standing;
use crate::space::TableTransaction;
use crate::store::attachment::{renumber, undefined};
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Key, Located};
use std::sync::Arc;

impl Store {
    /// Gives an unattached object the contents of `snapshot`, which stays, as do the object's name,
    /// keys, identity and count of psyncs.
    ///
    /// # Errors
    /// `NotItsSnapshot`: it is none, or has other addresses. `NotFound`, `Held`, `WrongKey`,
    /// `ObjectReadOnly`; `NoRoom` for a larger snapshot; `NoAddresses`. Nothing has changed then.
    pub fn rollback(self: &Arc<Self>, name: &str, snapshot: &str, key: Key<'_>) -> Result<()> {
        self.reap()?;
        // Before a needless recovery.
        self.view(|table| snapshot_of(table, &table.object(name)?, snapshot, key))?;
        let (object, object_lock) = self.take_to_roll_back(name, snapshot, key)?;
        let unused = self.update_then(
            |table| {
                let object = table.entry(object.offset)?;
                let base = snapshot_of(table, &object, snapshot, key)?;
                let unused = self.roll_back(table, object, base)?;
                Self::prove(table)?;
                Ok((object, unused))
            },
            |(left, unused)| {
                let (bitmap, len) = left.bitmap();
                self.give_back(bitmap, len);
                self.give_back(left.entry.primary_offset(), left.entry.extent_len());
                drop(object_lock);
                unused
            },
        )?;
        let _ = self.remove_left(unused);
        Ok(())
    }

    fn take_to_roll_back(
        self: &Arc<Self>,
        name: &str,
        snapshot: &str,
        key: Key<'_>,
    ) -> Result<(Located, ObjectLock)> {
        loop {
            let (object, object_lock) =
                self.unless_held_still(|| self.take_recovered(name, Right::Write, key))?;
            let short = self.view(|table| {
                let base = snapshot_of(table, &object, snapshot, key)?;
                let published = Standing::in_line(&table.progress(&base)?).published;
                let own = Standing::in_line(&table.progress(&object)?).published;
                Ok((own < published || undefined(table, &object)?.is_some()).then_some(published))
            })?;
            let Some(published) = short else { return Ok((object, object_lock)) };
            drop(object_lock);
            self.raise_progress(name, key, published)?;
        }
    }

    /// Only a psync changes progress atomically.
    fn raise_progress(self: &Arc<Self>, name: &str, key: Key<'_>, published: u64) -> Result<()> {
        let mut writer = self.attach_raw_writer(name, key)?;
        let mut line = [0; LINE as usize];
        self.view(|table| table.read_object(writer.object(), 0, &mut line))?;
        writer.psync_step(&mut |primary, batch: &mut Batch| {
            batch.copy_lines(primary, &line);
            Ok(published)
        })?;
        writer.detach()
    }

    fn roll_back(
        &self,
        table: &mut TableTransaction<'_>,
        left: Located,
        mut base: Located,
    ) -> Result<Option<Located>> {
        table.stock_up(true)?;
        let (pages, had) = (base.entry.pages.get(), left.entry.pages.get());
        let mut object = left;
        object.entry.pages = base.entry.pages;
        object.entry.size = base.entry.size;
        object.entry.fingerprint = base.entry.fingerprint;
        object.entry.set(FLAG_TYPED, base.entry.has(FLAG_TYPED));
        let kept = (pages <= had).then_some(left.entry.primary.get());
        if Mutant::BitmapGivenUp.is_on() {
            table.pages().medium().zero(left.bitmap().0, left.bitmap().1)?;
        }
        table.rest_in(&mut object, &mut base, kept)?;
        let unused = table.leave_base(&mut { left })?;
        match kept {
            Some(first) => table.give_extent(first + pages, had - pages)?,
            None => table.give_extent(left.entry.primary.get(), had)?,
        }
        renumber(table, &mut object)?;
        table.put_entry(&object)?;
        self.clear_bitmap(table, &object)?;
        if kept.is_none() {
            let medium = table.pages().medium();
            clear_fresh(medium, object.entry.primary_offset(), object.entry.extent_len(), 0)?;
        }
        Ok(unused)
    }
}

fn snapshot_of(
    table: &TableTransaction<'_>,
    object: &Located,
    snapshot: &str,
    key: Key<'_>,
) -> Result<Located> {
    if object.entry.has(FLAG_BASE) || object.entry.has(FLAG_READ_ONLY) {
        return Err(StoreError::ObjectReadOnly);
    }
    if !object.opens_for_writing(key) {
        return Err(StoreError::WrongKey);
    }
    let refused = |why| StoreError::NotItsSnapshot { snapshot: snapshot.to_owned(), why };
    let base = match table.object(snapshot) {
        Err(StoreError::NotFound) => return Err(refused("there is no such object")),
        base => base?,
    };
    if !base.entry.has(FLAG_BASE) {
        return Err(refused("it can be written to"));
    }
    if base.entry.address != object.entry.address {
        return Err(refused("it has other addresses"));
    }
    if !base.opens_for_reading(key) {
        return Err(StoreError::WrongKey);
    }
    if table.seal_id(&base)? != table.seal_id(object)? {
        return Err(refused("it was not sealed as the object was"));
    }
    let (needed, largest) = (base.entry.extent_len(), object.entry.reserved.get());
    if needed > largest {
        return Err(StoreError::NoAddresses { needed, largest });
    }
    Ok(base)
}
