//! Objects on demand detached before an epoch published all their commits
//! (docs/decisions/0052-on-demand.md): memory and place on the lane stay until an epoch publishes
//! them, or the space ends.
//!
//! Invariants:
//!
//! 1. A transaction on other objects may add to the list: a thread that has the list waits for no
//!    transaction.
//! 2. The list is locked after `turn` of the objects on demand, and before the store's locks.

use super::demand::Demand;
use crate::error::Cause;
use crate::memory::{Area, MemoryError};
use indelible_store::Mutant;
use indelible_store::store::Writer;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct Leaver {
    pub(super) object: u64,
    pub(super) area: Area,
}

impl Leaver {
    /// If the pool lacks commits, memory and its mark in the entry stay for the next attach.
    pub(super) fn end(
        self,
        demand: &Demand,
        writer: Option<Writer>,
        published: Result<(), Cause>,
    ) -> Result<(), Cause> {
        let whole = published.is_ok() || Mutant::MemoryGivenUp.is_on();
        let detached = writer.map_or(Ok(()), |mut writer| {
            if whole {
                writer.forget_memory();
            }
            writer.detach()
        });
        let ended = published.and(detached.map_err(Cause::from));
        match ended {
            Ok(()) => self.area.remove().map_err(MemoryError::from)?,
            Err(_) => demand.leave(),
        }
        ended
    }
}

#[derive(Debug, Default)]
pub(super) struct Leaving(Mutex<Vec<Leaver>>);

impl Leaving {
    fn list(&self) -> MutexGuard<'_, Vec<Leaver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, leaver: Leaver) {
        self.list().push(leaver);
    }

    pub(super) fn objects(&self) -> Vec<u64> {
        self.list().iter().map(|leaver| leaver.object).collect()
    }

    /// Ends each before another thread finds the list without it.
    pub(super) fn end(&self, objects: &[u64], end: impl FnMut(Leaver)) {
        let mut list = self.list();
        list.extract_if(.., |leaver| objects.contains(&leaver.object)).for_each(end);
    }
}
