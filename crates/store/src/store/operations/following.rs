//! Readers beside a writer: each has what a psync left, of its own choice the newest, and keeps nobody waiting.
//!
//! Such a reader makes a snapshot that has no name, and has it locked as long as it reads. A process that dies has it locked no longer.

use super::boundary::Right;
use crate::entropy::{now, random_id};
use crate::error::{Result, StoreError};
use crate::format::entry::{FLAG_BASE, FLAG_HIDDEN};
use crate::medium::LockMode;
use crate::recovery::Standing;
use crate::store::attachment::{Reader, Tail};
use crate::store::locks::ObjectLock;
use crate::store::pool::Store;
use crate::table::Key;
use std::sync::Arc;

impl Store {
    /// Attaches what the last psync of an object left, for reading, whoever has the object attached or attaches it from now on. It has the
    /// object's addresses. Of a snapshot, attaches that.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `NoRoom`; `HeldStill`, `Changing`: not within [`patience`](Store::patience). `ReadOnly` of the medium.
    pub fn attach_snapshot(self: &Arc<Self>, name: &str, key: Key<'_>) -> Result<Reader> {
        if self.view(|table| table.object(name))?.entry.has(FLAG_BASE) {
            return self.attach_reader(name, key);
        }
        let (id, now) = (random_id()?, now());
        let (object_lock, object, base) =
            self.at_boundary(&[(name, key)], Right::Read, |table, objects| {
                let object = objects.first_mut().ok_or(StoreError::NotFound)?;
                let mut base = self.freeze(table, object, None, Key::default(), (id, now))?;
                self.go_on(table, object, &mut base)?;
                Self::prove(table)?;
                // Before others can see it: they may merge a base without a lock.
                let object_lock = ObjectLock::take(&self.object_locks, &base, LockMode::Shared)?;
                Ok((object_lock, *object, base))
            })?;
        // The chain below is longer without it, and nothing else is wrong.
        let _ = self.absorb(name, &base);
        let (base, layers, tail) = self.view(|table| {
            let base = table.entry(base.offset)?;
            let shown = Standing::in_line(&table.progress(&base)?).psyncs;
            Ok((base, table.layers(&base)?, Tail::of(self, table, &object, shown)?))
        })?;
        Ok(Reader::of_base(self, object_lock, base, layers, tail))
    }

    /// Ends a reader that [`attach_snapshot`](Store::attach_snapshot) attached, and gives back what nobody else reads.
    ///
    /// # Errors
    /// Those of the table. A base that is left goes with the next [`reap`](Store::reap).
    pub fn end_snapshot(self: &Arc<Self>, reader: Reader) -> Result<()> {
        let object = *reader.object();
        drop(reader);
        self.remove_left(object.entry.has(FLAG_HIDDEN).then_some(object)).map(drop)
    }
}
