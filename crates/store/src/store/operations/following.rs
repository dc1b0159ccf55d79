//! Readers beside a writer: each has a psync's state, the newest when it chooses, and keeps no
//! writer waiting.
//!
//! Such a reader makes a snapshot that has no name, and has it locked as long as it reads. A
//! process that dies has it locked no longer.
//!
//! Several readers of one object have one base, as long as the log of the writer's lane has all
//! psyncs since: another base would be a gap in the log of all others, each of which would make one
//! in its turn. A reader shares a base only once it has absorbed all that it can, as readers keep
//! the layers in memory.

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
    /// Attaches the state of an object's last psync, for reading, beside any present or later
    /// attachments. It has the object's addresses. A snapshot is attached itself. A sealed object
    /// is as it is in the pool, until the reader is [unsealed](Reader::unseal).
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `NoRoom`; `HeldStill`, `Changing`: not within
    /// [`patience`](Store::patience). `ReadOnly` of the medium.
    pub fn attach_snapshot(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Reader> {
        if self.view(|table| table.object(name))?.entry.has(FLAG_BASE) {
            return self.attach_raw_reader(name, key);
        }
        // Before others can see it: they may merge a base without a lock.
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
        // The chain below is longer without it, and nothing else is wrong.
        let _ = self.absorb(name, &base);
        object_lock.share()?;
        let (base, layers, tail) = self.view(|table| {
            let base = table.entry(base.offset)?;
            let shown = Standing::in_line(&table.progress(&base)?).psyncs;
            Ok((base, table.layers(&base)?, Tail::of(self, table, &object, shown)?))
        })?;
        Ok(Reader::of_base(self, object_lock, base, layers, tail))
    }

    /// Attaches the base of another reader, as [`attach_snapshot`](Store::attach_snapshot) made it,
    /// and shows its state: [`follow`](Store::follow) has the later psyncs, or reports that the log
    /// does not go back to it. The pool is not changed, and the writer takes no notice. `None`:
    /// there is no base from which the log may go on, or it is not shared yet.
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
                // Its writer has failed, or died: recovery finds the state of its last psync.
                return Ok(None);
            }
            let base = table.base(&object)?;
            let psyncs = |of: &Located| Ok::<_, StoreError>(Standing::in_line(&table.progress(of)?).psyncs);
            let shown = psyncs(&base)?;
            // A named base can be destroyed while it has no reader. The log no longer has psyncs
            // that the object's own line counts.
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

    /// Attaches an object to be read where it lies, also beside its writer. `None`: the pool was
    /// opened for reading, or a dead writer left psyncs that
    /// [`attach_reader`](Store::attach_reader) recovers.
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

    /// Ends a reader of [`attach_snapshot`](Store::attach_snapshot), and frees the base if it was
    /// the last one.
    ///
    /// # Errors
    /// Those of the table. A base that is left goes with the next [`reap`](Store::reap).
    pub fn end_snapshot(self: &Arc<Self>, reader: Reader) -> Result<()> {
        let object = *reader.object();
        drop(reader);
        self.remove_left(object.entry.has(FLAG_HIDDEN).then_some(object)).map(drop)
    }
}
