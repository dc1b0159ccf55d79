use super::Pool;
use crate::backing::BackingError;
use crate::error::{Cause, Error, Result};
use crate::memory::{self, MemoryError};
use crate::sys::{boot, ofd};
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::Store;
use std::sync::Arc;
use std::time::Duration;

/// Commits on demand that are not durable: see [`Pool::pending`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingCommits {
    /// Upper bound of transactions, of all the process's on-demand objects in the pool.
    pub transactions: u64,
    /// Bytes of this object in the next epoch, in lines of 64.
    pub bytes: u64,
    /// Time since the first commit, by the machine's clock.
    pub age: Duration,
    /// Transactions made durable at once, because of the [guard](Pool::set_guard).
    pub at_once: u64,
}

impl Pool {
    /// The commits of an object on demand that a power cut would lose, in any process. `None`: no
    /// process has it on demand, or this user cannot read their memory.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn pending(&self, name: &str) -> Result<Option<PendingCommits>> {
        let inner = &self.inner;
        let found = inner.alive().and_then(|()| Ok(inner.store.find(name)?.entry));
        let entry = self.about("inspect", name, found)?;
        let Some(number) = entry.memory_in(&boot::boot_id()) else { return Ok(None) };
        let seen = memory::look(&inner.memory_place(), number, entry.id, entry.content_len() as usize);
        Ok(seen.map(|seen| PendingCommits {
            transactions: seen.commits,
            bytes: seen.lines * LINE,
            age: match seen.since {
                0 => Duration::ZERO,
                since => Duration::from_nanos(memory::now().saturating_sub(since)),
            },
            at_once: seen.at_once,
        }))
    }

    /// Makes durable the on-demand commits that dead processes left in memory; returns the number
    /// of such objects.
    ///
    /// # Errors
    /// `Gone`, `Damaged`, `Version`: a process's memory is missing, or unreadable: see
    /// [`give_memory_up`](Pool::give_memory_up). Those of an attach, and of a psync.
    pub fn recover(&self) -> Result<u64> {
        let inner = &self.inner;
        let recover = || -> Result<u64, Cause> {
            inner.alive()?;
            let (mut objects, mut failed) = (0, None);
            for number in inner.store.memories()? {
                match ofd::unnamed(|| self.recover_number(number)) {
                    Ok(members) => objects += members,
                    // It is no dead process's memory, or another process recovers it.
                    Err(Cause::Memory(MemoryError::Backing(BackingError::InUse { .. }))) => {}
                    Err(cause) => failed = Some(cause),
                }
            }
            failed.map_or(Ok(objects), Err)
        };
        recover().map_err(|cause| self.not_recovered(cause))
    }

    /// As [`recover`](Pool::recover), of one process's memory, by its number: `Held` if a process
    /// has it. For the guard.
    #[doc(hidden)]
    pub fn recover_memory(&self, number: u64) -> Result<u64> {
        self.inner
            .alive()
            .and_then(|()| self.recover_number(number))
            .map_err(|cause| self.not_recovered(cause))
    }

    /// Runs work on the store under the pool, again after recovery of commits in a dead process's
    /// memory. For tools; not part of the stable interface.
    ///
    /// # Errors
    /// Those of [`recover`](Pool::recover); inside, those of the work.
    #[doc(hidden)]
    pub fn recovering<T>(
        &self,
        mut work: impl FnMut(&Arc<Store>) -> Result<T, StoreError>,
    ) -> Result<Result<T, StoreError>> {
        loop {
            match work(&self.inner.store) {
                Err(StoreError::MemoryLeft { memory }) => drop(self.recover_memory(memory)?),
                done => return Ok(done),
            }
        }
    }

    fn recover_number(&self, number: u64) -> Result<u64, Cause> {
        let members = self.inner.store.objects_in(number)?.len() as u64;
        self.inner.patiently(|| self.inner.recover_memory(number)).map(|()| members)
    }

    fn not_recovered(&self, cause: Cause) -> Error {
        Error::new("recover commits in memory of", cause).pool(&self.inner.path)
    }
}
