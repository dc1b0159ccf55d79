//! Readers beside a writer, each at a psync, by a nameless snapshot that they lock.
//!
//! Readers of one object share a base while the log of the writer's lane has all psyncs since. A
//! base is shared only after its absorption: readers keep layers in memory.

use super::boundary::Right;
use crate::entropy::{now, random_id};
use crate::error::{Result, SealError, StoreError};
use crate::format::entry::{FLAG_BASE, FLAG_HIDDEN, FLAG_OVERLAY};
use crate::medium::LockMode;
use crate::mutant::Mutant;
use crate::recovery::Standing;
use crate::store::attachment::{InPlace, Reader, Tail};
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::{Class, Key, Located};
use std::sync::Arc;

impl Store {
    /// Attaches an object's last psync, or a snapshot, for reading, beside any attachments;
    /// encrypted until [unsealed](Reader::unseal).
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `NoRoom`; `HeldStill`, `Changing`: not within
    /// [`patience`](Store::patience). `ReadOnly` of the medium.
    pub fn attach_snapshot(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Reader> {
        if self.view(|table| table.object(name))?.entry.has(FLAG_BASE) {
            return self.attach_raw_reader(name, key);
        }
        // Others may merge an unlocked base.
        let mode = if Mutant::BaseSharedEarly.is_on() { LockMode::Shared } else { LockMode::Exclusive };
        let (id, now) = (random_id()?, now());
        let (object_lock, object, base) =
            self.at_boundary(&[(name, key)], Right::Read, |table, objects| {
                let object = objects.first_mut().ok_or(StoreError::NotFound)?;
                let mut base = self.freeze(table, object, None, Key::default(), (id, now))?;
                self.go_on(table, object, &mut base)?;
                Self::prove(table)?;
                let object_lock = ObjectLock::take(&self.object_locks, &base, mode)?;
                Ok((object_lock, *object, base))
            })?;
        let _ = self.absorb(name, &base);
        object_lock.share()?;
        let (base, layers, tail) = self.view(|table| {
            let base = table.entry(base.offset)?;
            let shown = Standing::in_line(&table.progress(&base)?).psyncs;
            Ok((base, table.layers(&base)?, Tail::of(self, table, &object, shown)?))
        })?;
        Ok(Reader::of_base(self, object_lock, base, layers, tail))
    }

    /// Attaches another reader's base from [`attach_snapshot`](Store::attach_snapshot) at its
    /// state; [`follow`](Store::follow) has later psyncs. Changes nothing. `None`: no usable base,
    /// or it is not shared yet.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`.
    pub fn attach_base(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Option<Reader>> {
        if self.read_only {
            return Ok(None);
        }
        self.view(|table| {
            let object = self.usable(table, name)?;
            if !object.opens_for_reading(key) {
                return Err(StoreError::WrongKey);
            }
            if object.entry.has(FLAG_BASE) || !object.entry.has(FLAG_OVERLAY) {
                return Ok(None);
            }
            let failed = object.is_bound() && self.written_on(&object)?.is_none();
            if failed && !Mutant::FailedFollowed.is_on() {
                // Recovery finds its last psync.
                return Ok(None);
            }
            let base = table.base(&object)?;
            let psyncs = |of: &Located| Ok::<_, StoreError>(Standing::in_line(&table.progress(of)?).psyncs);
            let shown = psyncs(&base)?;
            // A named base may change between readers; the log may lack psyncs.
            if !base.entry.has(FLAG_HIDDEN)
                || base.entry.size != object.entry.size
                || psyncs(&object)? != shown
            {
                return Ok(None);
            }
            let Some(object_lock) = ObjectLock::try_take(&self.object_locks, &base, LockMode::Shared)? else {
                return Ok(None);
            };
            let (layers, tail) = (table.layers(&base)?, Tail::of(self, table, &object, shown)?);
            Ok(Some(Reader::of_base(self, object_lock, base, layers, tail)))
        })
    }

    /// Attaches an object to be read in place, also beside its writer. `None`: the pool is
    /// read-only, or [`attach_reader`](Store::attach_reader) must recover the object.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `KeyNeeded`.
    pub fn attach_in_place(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Option<InPlace>> {
        if self.read_only {
            return Ok(None);
        }
        self.view(|table| {
            let object = self.usable(table, name)?;
            Class::expect_bytes(&object.entry)?;
            if !object.opens_for_reading(key) {
                return Err(StoreError::WrongKey);
            }
            if object.is_sealed() {
                return Err(SealError::KeyNeeded.into());
            }
            if object.is_bound() && self.written_on(&object)?.is_none() {
                return Ok(None);
            }
            let shown = Standing::in_line(&table.progress(&object)?).psyncs;
            Ok(Some(InPlace::new(self, Tail::of(self, table, &object, shown)?)))
        })
    }

    /// Ends a reader of [`attach_snapshot`](Store::attach_snapshot), and frees an unneeded base.
    ///
    /// # Errors
    /// Those of the table. The next [`reap`](Store::reap) removes a base left.
    pub fn end_snapshot(self: &Arc<Self>, reader: Reader) -> Result<()> {
        let object = *reader.object();
        drop(reader);
        self.remove_left(object.entry.has(FLAG_HIDDEN).then_some(object)).map(drop)
    }
}
