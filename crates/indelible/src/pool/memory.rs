//! Memory of objects on demand: its place, its publication, leftovers of dead processes.

use super::{Class, Inner, Pool};
use crate::backing::{BackingError, Common, Identity, Origin};
use crate::error::{Cause, Result};
use crate::media::{Media, MediaKind};
use crate::memory::{self, MemoryError, MemoryLocation};
use crate::sys::boot;
use indelible_store::format::LINE;
use indelible_store::table::{Key, Located};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// When commits of objects on demand become durable without a request: see [`Pool::set_epochs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochBounds {
    /// Longest time until then; by default a second. `Duration::MAX`: none. At least
    /// [`LEAST`](EpochBounds::LEAST).
    pub every: Duration,
    /// Most changed bytes until then, in lines of 64; by default 4 MiB.
    pub bytes: u64,
}

impl EpochBounds {
    /// Least time between two such epochs.
    pub const LEAST: Duration = Duration::from_millis(1);
}

impl Default for EpochBounds {
    fn default() -> Self {
        EpochBounds { every: Duration::from_secs(1), bytes: 4 << 20 }
    }
}

#[derive(Debug)]
pub(crate) struct Bounds {
    nanoseconds: AtomicU64,
    lines: AtomicU64,
}

impl Default for Bounds {
    fn default() -> Self {
        let bounds = Bounds { nanoseconds: AtomicU64::new(0), lines: AtomicU64::new(0) };
        bounds.set(EpochBounds::default());
        bounds
    }
}

impl Bounds {
    fn set(&self, EpochBounds { every, bytes }: EpochBounds) {
        let every = every.max(EpochBounds::LEAST);
        self.nanoseconds.store(u64::try_from(every.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.lines.store((bytes / LINE).max(1), Ordering::Relaxed);
    }

    pub(crate) fn every(&self) -> Option<Duration> {
        let nanoseconds = self.nanoseconds.load(Ordering::Relaxed);
        (nanoseconds != u64::MAX).then(|| Duration::from_nanos(nanoseconds))
    }

    #[inline]
    pub(crate) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<Vec<u64>>);

impl Groups {
    fn numbers(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, number: u64) {
        self.numbers().push(number);
    }

    pub(crate) fn end(&self, number: u64) {
        self.numbers().retain(|other| *other != number);
    }
}

impl Pool {
    /// Sets when this process's commits of objects on demand become durable without a request.
    pub fn set_epochs(&self, bounds: EpochBounds) {
        self.inner.epochs.set(bounds);
    }

    /// Gives up commits that a dead process left in missing or damaged memory of an object on
    /// demand. `false`: nothing to give up; the pool has all commits.
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`, `Held`; those of an attach, if the memory cannot be applied: nothing
    /// is given up.
    pub fn give_memory_up(&self, name: &str, key: &[u8]) -> Result<bool> {
        let inner = &self.inner;
        let give_up = || {
            let entry = inner.store.find(name)?.entry;
            let Some(number) = entry.memory_in(&boot::boot_id()) else { return Ok(false) };
            match memory::recover(&inner.store, &inner.memory_place(), number) {
                Ok(()) => Ok(false),
                Err(
                    MemoryError::Lost { .. }
                    | MemoryError::Damaged { .. }
                    | MemoryError::Backing(
                        BackingError::Damaged { .. }
                        | BackingError::Version { .. }
                        | BackingError::OfOriginal { .. },
                    ),
                ) => {
                    inner.store.give_memory_up(name, Key(key))?;
                    Ok(true)
                }
                Err(error) => Err(error.into()),
            }
        };
        let result = inner.alive().and_then(|()| inner.patiently(give_up));
        self.about("give up commits in memory of", name, result)
    }
}

pub(crate) fn memory_place(media: &Media, path: &Path, pool: [u8; 16]) -> MemoryLocation {
    let of_files = matches!(media.kind(), MediaKind::File | MediaKind::Memory | MediaKind::Dax);
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let beside = path.parent().map(Path::to_owned).filter(|_| of_files && path.exists());
    MemoryLocation { pool, boot: boot::boot_id(), beside, origin: Origin { file: media.identity(), path } }
}

impl Inner {
    pub(crate) fn epochs(&self) -> &Arc<Bounds> {
        &self.epochs
    }

    pub(crate) fn groups(&self) -> &Arc<Groups> {
        &self.groups
    }

    /// Calls that wait for durability wait for all commits of the process.
    pub(crate) fn recover_other_groups(&self, own: u64) -> Result<(), Cause> {
        // Rule D5 of docs/protocol.md.
        let numbers = self.groups.numbers().clone();
        for number in numbers.into_iter().filter(|number| *number != own) {
            self.recover_memory(number)?;
            self.groups.end(number);
        }
        Ok(())
    }

    pub(crate) fn memory_place(&self) -> MemoryLocation {
        memory_place(&self.media, &self.path, self.store.id())
    }

    pub(super) fn remove_leftover_memory(&self) -> Result<u64, Cause> {
        let place = self.memory_place();
        // Without a boot ID, no file is of this boot, and none exists.
        if place.boot == [0; 16] { Ok(0) } else { Ok(memory::remove_leftovers(&self.store, &place)?) }
    }

    pub(super) fn remove_shared_memory(&self, before: &Located) {
        let now = self.store.find_id(&before.entry.id);
        let stays = now.is_ok_and(|now| now.entry.binding == before.entry.binding);
        if Class::of(&before.entry) == Some(Class::Shared) && !stays {
            let place = self.memory_place();
            let identity = place.shared(before.entry.id, before.entry.binding.get());
            let _ = Common::remove(place.folders(), &identity);
        }
    }

    pub(crate) fn may_need(&self, identity: &Identity, stated: &Origin) -> bool {
        let place = self.memory_place();
        identity.pool == place.pool
            && (stated.is_file_of(&place.origin) || self.store.may_be_in(identity.binding).unwrap_or(true))
    }

    pub(super) fn recover_memory(&self, number: u64) -> Result<(), Cause> {
        Ok(memory::recover(&self.store, &self.memory_place(), number)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_no_length_is_the_least_one() {
        let bounds = Bounds::default();
        assert_eq!(bounds.every(), Some(Duration::from_secs(1)));
        for (given, every) in [
            (Duration::ZERO, Some(EpochBounds::LEAST)),
            (Duration::from_nanos(1), Some(EpochBounds::LEAST)),
            (Duration::from_millis(20), Some(Duration::from_millis(20))),
            (Duration::MAX, None),
        ] {
            bounds.set(EpochBounds { every: given, bytes: 0 });
            assert_eq!((bounds.every(), bounds.lines()), (every, 1));
        }
    }
}
