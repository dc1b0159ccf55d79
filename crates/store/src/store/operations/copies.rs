//! Instant copies and snapshots: an object's extent becomes a base, on which the object and its
//! copies rest.
//!
//! One batch of the table publishes the base's entry, and the object's with a new, unwritten
//! extent. Cost: the bitmap's summary, a page per 4 TiB.

use super::boundary::Right;
use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::format::entry::{BITMAP_GROUP, FLAG_BASE};
use crate::medium::{LockMode, clear_fresh, zero_fresh};
use crate::mutant::Mutant;
use crate::recovery::{Standing, clear_left, put_progress};
use crate::space::TableTransaction;
use crate::store::attachment::{renumber, undefined};
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{CreateOptions, Key, Located};
use std::sync::Arc;

/// A requested snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotOf<'a> {
    /// Name of the object.
    pub object: &'a str,
    /// Its key.
    pub key: Key<'a>,
    /// Name of the snapshot.
    pub name: &'a str,
}

impl Store {
    /// Keeps any number of objects' last psyncs, as of one moment, as read-only objects of other
    /// names at the same addresses. Writers' psyncs wait until their lanes were redone and the
    /// table was changed.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `Held`, `WrongKey`, `NoRoom`; `HeldStill`, `Changing`: not within
    /// [`patience`](Store::patience): nothing happened.
    pub fn snapshot(self: &Arc<Self>, of: &[SnapshotOf<'_>]) -> Result<Vec<Located>> {
        self.reap()?;
        let ids = (0..of.len()).map(|_| random_id()).collect::<Result<Vec<_>, _>>()?;
        let (objects, now): (Vec<_>, _) = (of.iter().map(|of| (of.object, of.key)).collect(), now());
        let bases = self.at_boundary(&objects, Right::Write, |table, objects| {
            let mut bases = Vec::with_capacity(of.len());
            for ((object, of), id) in objects.iter_mut().zip(of).zip(&ids) {
                // An object's second snapshot rests on its first.
                *object = table.entry(object.offset)?;
                let mut base = self.freeze(table, object, Some(of.name), of.key, (*id, now))?;
                self.go_on(table, object, &mut base)?;
                // No reader comes before the absorption.
                let object_lock = ObjectLock::take(&self.object_locks, &base, LockMode::Exclusive)?;
                bases.push((base, object_lock));
            }
            Self::prove(table)?;
            Ok(bases)
        })?;
        for (of, (base, _)) in of.iter().zip(&bases) {
            let _ = self.absorb(of.object, base);
        }
        Ok(bases.into_iter().map(|(base, _)| base).collect())
    }

    /// Creates an object with the last psync of another, or a snapshot's contents, at the same
    /// addresses; a process attaches one of the two at a time. Keys and read-only are those of
    /// `how`; without keys, `key` if the other object has any.
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
                let object = self.rest_on(table, &mut base, copy, (ids.0, now), &how)?;
                Self::prove(table)?;
                Ok(object)
            });
        }
        self.at_boundary(&[(name, key)], Right::Write, |table, objects| {
            let object = objects.first_mut().ok_or(StoreError::NotFound)?;
            let how = how.with_keys_of(object, key);
            let mut base = self.freeze(table, object, None, Key::default(), (ids.1, now))?;
            let copy = self.rest_on(table, &mut base, copy, (ids.0, now), &how)?;
            // Last, for the space behind.
            self.go_on(table, object, &mut base)?;
            Self::prove(table)?;
            Ok(copy)
        })
    }

    pub(super) fn freeze(
        &self,
        table: &mut TableTransaction<'_>,
        object: &Located,
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
        put_progress(table.pages().medium(), self.seed, &base, &standing)?;
        Ok(base)
    }

    /// A new number voids batches, which the base has.
    pub(super) fn go_on(
        &self,
        table: &mut TableTransaction<'_>,
        object: &mut Located,
        base: &mut Located,
    ) -> Result<()> {
        table.rest(object, base)?;
        renumber(table, object)?;
        table.put_entry(object)?;
        self.prepare_overlay(table, object)
    }

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
        put_progress(table.pages().medium(), self.seed, &object, &standing)?;
        Ok(object)
    }

    /// Clears a new overlay's bitmap.
    fn prepare_overlay(&self, table: &mut TableTransaction<'_>, object: &Located) -> Result<()> {
        self.clear_bitmap(table, object)?;
        // Pages are written whole.
        let medium = table.pages().medium();
        Ok(clear_fresh(medium, object.entry.primary_offset(), object.entry.extent_len(), 0)?)
    }

    /// Clears the summaries of a new overlay's bitmap.
    pub(super) fn clear_bitmap(&self, table: &mut TableTransaction<'_>, object: &Located) -> Result<()> {
        let medium = table.pages().medium();
        let (start, len) = object.bitmap();
        clear_fresh(medium, start, len, 0)?;
        for summary in (start..start + len).step_by(((BITMAP_GROUP + 1) * PAGE) as usize) {
            zero_fresh(medium, summary, PAGE, table.root.virgin.get().saturating_sub(summary).min(PAGE))?;
        }
        table.raise_virgin((start + len).max(object.entry.primary_offset() + object.entry.extent_len()));
        Ok(())
    }

    /// Makes progress and bitmaps durable.
    pub(super) fn prove(table: &TableTransaction<'_>) -> Result<()> {
        if !Mutant::BaseUnproven.is_on() {
            table.pages().medium().barrier()?;
        }
        Ok(())
    }
}
