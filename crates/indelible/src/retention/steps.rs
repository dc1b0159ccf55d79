//! Conversion of large containers in steps, each of which a psync may follow
//! (docs/decisions/0035-retention.md).
//!
//! The old container stays whole until all elements are converted; meanwhile the root is a
//! [`Migrating`], with both. After a crash it continues from the last psync.

use super::pairs::Pairs;
use super::versions::{Converted, Opened};
use crate::collections::{HeapRef, PVec, Persist};
use crate::error::{ErrorKind, Result};
use crate::heap::Heap;
use indelible_store::Mutant;

/// The value of a root during its conversion. A program that expects either container gets an error
/// with this type's name.
#[derive(Debug, crate::Persist)]
#[repr(C)]
pub struct Migrating<Old, New> {
    old: Old,
    new: New,
    done: u64,
}

/// Progress of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Converted elements.
    pub done: u64,
    /// Elements in all.
    pub total: u64,
    /// Whether the root is the new container.
    pub finished: bool,
}

impl<Old, New> Migrating<Old, New> {
    /// The whole old container.
    pub fn old(&self) -> &Old {
        &self.old
    }

    /// The converted elements.
    pub fn converted(&self) -> &New {
        &self.new
    }

    /// Number of converted elements.
    pub fn done(&self) -> u64 {
        self.done
    }
}

impl Heap {
    /// Converts up to `most` further elements of the vector root `name`. Begins a migration if none
    /// is under way, and ends it with the last element.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 64 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::PVec;
    ///
    /// heap.root_or_default::<PVec<u32>>("prices")?.extend(0..100_000); // an earlier version
    /// heap.psync()?;
    ///
    /// loop {
    ///     let progress = heap.migrate_vec("prices", 10_000, |old: &u32, _| Ok(u64::from(*old)))?;
    ///     heap.psync()?; // a program that dies goes on from here
    ///     eprintln!("{} of {}", progress.done, progress.total);
    ///     if progress.finished {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(heap.root_mut::<PVec<u64>>("prices")?.len(), 100_000);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// At any psync the root is the old vector, a [`Migrating`] with the whole old vector, or the
    /// new one. The heap needs room for both.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`: the root is neither of the vectors, nor between them; the
    /// converter's error as for [`RootFrom::open`](super::RootFrom::open): the migration can
    /// continue, or be [abandoned](Heap::abandon_migration); `HeapFull`, `Untrusted`, `Damaged`.
    pub fn migrate_vec<'h, Old, New>(
        &'h mut self,
        name: &str,
        most: u64,
        mut convert: impl FnMut(&Old, HeapRef<'h>) -> Converted<New>,
    ) -> Result<Progress>
    where
        Old: Persist<'h>,
        New: Persist<'h>,
    {
        let count = |new: &PVec<'h, New>| new.len() as u64;
        self.migrate(name, count, |opened, migrating: &mut Migrating<PVec<'h, Old>, PVec<'h, New>>| {
            let Migrating { old, new, done } = migrating;
            for item in old.iter().skip(*done as usize).take(most as usize) {
                let early = Mutant::ElementSkipped.is_on();
                *done += u64::from(early);
                let item = opened.converted::<Old, New>(convert(item, opened.place))?;
                new.try_push(item)?;
                *done += u64::from(!early);
            }
            Ok(old.len() as u64)
        })
    }

    /// As [`migrate_vec`](Heap::migrate_vec), for maps, perhaps of different kinds. Each step walks
    /// the converted pairs to its start: steps should not be small.
    ///
    /// # Errors
    /// As for [`migrate_vec`](Heap::migrate_vec); `RootType`: two pairs have the same new key.
    pub fn migrate_map<'h, Old, New>(
        &'h mut self,
        name: &str,
        most: u64,
        mut convert: impl FnMut(&Old::Key, &Old::Value, HeapRef<'h>) -> Converted<(New::Key, New::Value)>,
    ) -> Result<Progress>
    where
        Old: Pairs<'h>,
        New: Pairs<'h>,
    {
        let count = |new: &New| new.count() as u64;
        self.migrate(name, count, |opened, migrating: &mut Migrating<Old, New>| {
            let Migrating { old, new, done } = migrating;
            for (key, value) in old.behind(*done as usize).take(most as usize) {
                let pair =
                    convert(key, value, opened.place).map_err(|error| opened.failed::<Old, New>(error))?;
                if !new.add(pair.0, pair.1)? {
                    return Err(opened.failed::<Old, New>("two pairs have the same new key".into()));
                }
                *done += 1;
            }
            Ok(old.count() as u64)
        })
    }

    /// Abandons a migration: the root is the old container again; the converted part is dropped.
    ///
    /// # Errors
    /// `RootMissing`; `RootType`: no migration from `Old` to `New` is under way; `HeapFull`,
    /// `Untrusted`, `Damaged`.
    pub fn abandon_migration<'h, Old, New>(&'h mut self, name: &str) -> Result<&'h mut Old>
    where
        Old: Persist<'h>,
        New: Persist<'h>,
    {
        let place = HeapRef::new(self);
        let migrating = self.root_value::<Migrating<Old, New>>(place, name)?;
        let mut left = None;
        let old = self.rewrap(name, migrating, |Migrating { old, new, .. }| {
            left = Some(new);
            old
        })?;
        drop(left);
        Ok(old)
    }

    fn migrate<'h, Old, New>(
        &'h mut self,
        name: &str,
        count: impl FnOnce(&New) -> u64,
        convert: impl FnOnce(&Opened<'_, 'h>, &mut Migrating<Old, New>) -> Result<u64>,
    ) -> Result<Progress>
    where
        Old: Persist<'h>,
        New: Persist<'h> + Default,
    {
        let heap: &'h Heap = self;
        let place = HeapRef::new(heap);
        match heap.root_value::<New>(place, name) {
            Ok(new) => {
                let total = count(new.get());
                return Ok(Progress { done: total, total, finished: true });
            }
            Err(error) if error.kind() != ErrorKind::RootType => return Err(error),
            Err(_) => {}
        }
        let opened = Opened { heap, place, root: heap.find_any_root(name)? };
        let migrating = match opened.stored::<Old>()? {
            Some(old) => {
                let new = New::default();
                heap.rewrap(name, old, |old| Migrating { old, new, done: 0 })?
            }
            None => heap.root_value::<Migrating<Old, New>>(place, name)?.into_mut(),
        };
        let total = convert(&opened, migrating)?;
        let done = migrating.done;
        if done < total {
            return Ok(Progress { done, total, finished: false });
        }
        let mut left = None;
        let migrating = heap.root_value::<Migrating<Old, New>>(place, name)?;
        heap.rewrap(name, migrating, |Migrating { old, new, .. }| {
            left = Some(old);
            new
        })?;
        drop(left);
        Ok(Progress { done, total, finished: true })
    }
}
