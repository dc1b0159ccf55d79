//! Attaching several objects for writing by one change of the table, for views.

use super::attach::Unbound;
use super::class::{Memory, expect_class, expect_writable};
use super::leaving::MOST_AT_ONCE;
use super::unlocked::expect_key;
use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::space::TableTransaction;
use crate::store::lanes::WriterLane;
use crate::store::pool::{LaneSearch, Store};
use crate::table::{Class, Key};
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct Expected(Arc<WriterLane>);

impl Expected {
    fn of(pending: &Unbound) -> Expected {
        let lane = pending.writer.lane.clone();
        lane.bound.fetch_add(1, Ordering::Relaxed);
        Expected(lane)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.bound.fetch_sub(1, Ordering::Relaxed);
    }
}

type Bound = Result<(Unbound, Expected)>;

impl Store {
    /// Attaches objects without keys for writing, as many as possible, by one change of the table
    /// per 256. Results are in the order of the names.
    ///
    /// # Errors
    /// None is attached: the table could not be changed, or an object not recovered. For one
    /// object: `NotFound`, `Held`, `ObjectReadOnly`, `WrongKey`, `KeyNeeded`, `Mismatch` of its
    /// class, `VolatileGone`.
    pub fn attach_writers(self: &Arc<Self>, names: &[&str]) -> Result<Vec<Result<Writer>>> {
        let mut writers = Vec::with_capacity(names.len());
        for names in names.chunks(MOST_AT_ONCE) {
            let bound: Vec<Bound> = self.publish_binding(|table, search| {
                names.iter().map(|name| self.bind_one(table, name, search)).collect()
            })?;
            writers.extend(bound.into_iter().map(|bound| {
                let (pending, _expected) = bound?;
                self.attached(pending)
            }));
        }
        Ok(writers)
    }

    fn bind_one(
        self: &Arc<Self>,
        table: &mut TableTransaction<'_>,
        name: &str,
        search: &mut LaneSearch,
    ) -> Result<Bound> {
        let found = self.usable(table, name).and_then(|object| {
            expect_key(&object, None)?;
            expect_class(&object, Class::Psync)?;
            expect_writable(&object, Some(Key(b"")))?;
            Ok(object)
        });
        let object = match found {
            Ok(object) => object,
            Err(error) => return Ok(Err(error)),
        };
        match self.begin_writing(table, object, Memory::None, search) {
            Ok(pending) => {
                let expected = Expected::of(&pending);
                Ok(Ok((pending, expected)))
            }
            Err(error @ StoreError::Held { passing: false, .. }) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }
}
