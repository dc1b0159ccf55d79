//! A volume that this process has open: made, opened, and made durable.
//!
//! Invariant: a change that panicked, which damage makes it do, leaves the tree half changed in
//! memory. `failure` is set then, and nothing is psynced any more.

use crate::change::{Change, New};
use crate::error::{Error, Result};
use crate::format::{NAME, Time, Tree};
use indelible::{ErrorKind, Heap, HeapOptions, Pool, ReadHeap};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

/// Bytes of a new volume's object, which grows with it.
const FIRST: u64 = 1 << 20;

/// A volume: directories and files in one object of a pool.
///
/// Changes are stores to memory; [`sync`](Volume::sync) makes all of them durable as one step.
/// Dropped without it, or after a crash, the whole tree is as the last `sync` left it. Inodes are
/// known by number, the root directory is [`ROOT`](crate::ROOT); permissions are not checked here,
/// `pmo mount` has the kernel do it.
pub struct Volume {
    heap: Access,
    pool: Pool,
    name: String,
    /// How often each inode is held.
    held: HashMap<u64, u64>,
    /// Whether the tree differs from the last psync.
    changed: bool,
    failure: Option<String>,
    group: Option<Group>,
    clock: fn() -> Time,
}

/// One for each volume, so that its size does not matter.
#[allow(clippy::large_enum_variant)]
enum Access {
    Writing(Heap),
    Reading(ReadHeap),
}

/// A group of changes that become durable as one step.
struct Group {
    until: Instant,
    expired: bool,
}

/// Outcome of [`Volume::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// All changes are durable.
    Durable,
    /// A group is open: its end makes them durable.
    Later,
}

/// Room of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that it has, or may get of its pool.
    pub size: u64,
    /// Bytes of these that are free.
    pub free: u64,
    /// Inodes.
    pub inodes: u64,
}

impl Volume {
    /// Makes an empty volume, durably. Its object grows as far as the pool has room.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// use indelible::Pool;
    /// use indelible_posix::{New, ROOT, Volume};
    ///
    /// let pool = Pool::format(dir.path().join("files.pmo"), 64 << 20)?;
    /// let mut volume = Volume::create(&pool, "files", &New::of(0o755, 0, 0))?;
    /// let file = volume.create_file(ROOT, b"notes", &New::of(0o644, 0, 0))?;
    /// volume.write(file, 0, b"water the plants")?;
    /// volume.sync()?; // durable from here on, all of it or nothing
    /// # assert_eq!(volume.read(file, 6, 100)?, b"the plants");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `EEXIST`: the pool has an object of this name. `ENOSPC`.
    pub fn create(pool: &Pool, name: &str, root: &New<'_>) -> Result<Volume> {
        let existed = pool.stat(name).is_ok();
        let exists = || Error::new(libc::EEXIST, "the pool has an object of this name").about(name);
        let mut volume = match Volume::attach(pool, name) {
            Err(_) if existed => return Err(exists()),
            attached => attached?,
        };
        // A crash of an earlier call may have left an object that is still blank.
        if matches!(&volume.heap, Access::Writing(heap) if heap.stats()?.blocks > 0) {
            return Err(exists());
        }
        let mode = root.mode & 0o7777 | libc::S_IFDIR;
        let made = volume.change(|change| change.make_root(&New { mode, ..*root }));
        match made.and_then(|()| volume.sync()) {
            Ok(_) => Ok(volume),
            Err(error) => {
                drop(volume);
                let _ = pool.destroy(name);
                Err(error)
            }
        }
    }

    /// Opens a volume for changes, at a cost that does not depend on its size. Files that lost
    /// their last name while a program had them open are removed.
    ///
    /// # Errors
    /// `ENOENT`; `EBUSY`: another process has it; `EINVAL`: the object is no volume; `EIO`: it is
    /// damaged.
    pub fn open(pool: &Pool, name: &str) -> Result<Volume> {
        pool.stat(name).map_err(|error| Error::from(error).about(name))?;
        let mut volume = Volume::attach(pool, name)?;
        volume.look(|_| Ok(()))?;
        let orphans = volume.look(|tree| Ok(tree.orphans))?;
        if orphans != 0 {
            volume.change(|change| change.collect_orphans())?;
        }
        Ok(volume)
    }

    fn attach(pool: &Pool, name: &str) -> Result<Volume> {
        let heap = pool.heap_with(name, FIRST, HeapOptions::new().grow(true));
        Ok(Volume::with(pool, name, Access::Writing(heap.map_err(|error| Error::from(error).about(name))?)))
    }

    /// Opens a volume for reading: what its last psync left, also while another process changes it,
    /// or a [snapshot](Pool::snapshot) of it.
    ///
    /// # Errors
    /// As for [`open`](Volume::open).
    pub fn open_read(pool: &Pool, name: &str) -> Result<Volume> {
        let attached = match pool.attach_snapshot(name) {
            // Without room for a writer's changes, a reader keeps writers out.
            Err(error) if matches!(error.kind(), ErrorKind::NoRoom | ErrorKind::ReadOnly) => {
                pool.attach_read(name)
            }
            attached => attached,
        };
        let heap = attached.and_then(ReadHeap::open).map_err(|error| Error::from(error).about(name))?;
        let volume = Volume::with(pool, name, Access::Reading(heap));
        volume.look(|_| Ok(()))?;
        Ok(volume)
    }

    fn with(pool: &Pool, name: &str, heap: Access) -> Volume {
        Volume {
            heap,
            pool: pool.clone(),
            name: name.to_owned(),
            held: HashMap::new(),
            changed: false,
            failure: None,
            group: None,
            clock: now,
        }
    }

    /// Takes times from `clock`, and not from the system.
    pub fn set_clock(&mut self, clock: fn() -> Time) {
        self.clock = clock;
    }

    /// The name of its object.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it was opened for reading.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        matches!(self.heap, Access::Reading(_))
    }

    /// Why nothing is changed any more: a change met damage.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&Tree<'_>) -> Result<R>) -> Result<R> {
        let looked = catch_unwind(AssertUnwindSafe(|| match &self.heap {
            Access::Writing(heap) => look(heap.root_ref::<Tree<'_>>(NAME)?),
            Access::Reading(heap) => look(heap.root_ref::<Tree<'_>>(NAME)?),
        }));
        looked.unwrap_or(Err(DAMAGED))
    }

    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Change<'_>) -> Result<R>) -> Result<R> {
        if let Some(failure) = &self.failure {
            return Err(Error::new(libc::EIO, "the volume is damaged").about(failure.as_str()));
        }
        let Access::Writing(heap) = &mut self.heap else {
            return Err(Error::new(libc::EROFS, "the volume is read-only"));
        };
        self.changed = true;
        let (held, now) = (&self.held, (self.clock)());
        let changed = catch_unwind(AssertUnwindSafe(|| {
            let (tree, heap) = heap.root_and_heap::<Tree<'_>>(NAME)?;
            change(&mut Change { tree, heap, now, held })
        }));
        changed.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            self.failure = Some(said.unwrap_or_else(|| "a change ended in the middle".to_owned()));
            Err(DAMAGED)
        })
    }

    /// Keeps an inode that loses its last name, until it was [released](Volume::release) as often:
    /// a program has it open.
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode.
    pub fn hold(&mut self, inode: u64) -> Result<()> {
        self.look(|tree| tree.inode(inode).map(drop))?;
        *self.held.entry(inode).or_insert(0) += 1;
        Ok(())
    }

    /// Ends some [holds](Volume::hold) of an inode. With the last one, an inode without a name is
    /// removed.
    ///
    /// # Errors
    /// `EIO`.
    pub fn release(&mut self, inode: u64, holds: u64) -> Result<()> {
        match self.held.get_mut(&inode) {
            Some(held) if *held > holds => *held -= holds,
            Some(_) => {
                self.held.remove(&inode);
                if self.look(|tree| Ok(tree.inode(inode)?.links == 0)).unwrap_or(false)
                    && !self.is_read_only()
                {
                    return self.change(|change| change.released(inode));
                }
            }
            None => {}
        }
        Ok(())
    }

    /// Makes all changes durable as one step: one psync of the volume. While a
    /// [group](Volume::begin_group) is open, leaves that to its end.
    ///
    /// # Errors
    /// `ENOSPC`: the changes are in memory still, and another call may succeed. `EIO`: the volume
    /// is damaged, or its medium failed.
    pub fn sync(&mut self) -> Result<Synced> {
        match &mut self.group {
            Some(group) if Instant::now() < group.until => return Ok(Synced::Later),
            Some(group) => group.expired = true,
            None => {}
        }
        self.psync()?;
        Ok(Synced::Durable)
    }

    fn psync(&mut self) -> Result<()> {
        if let Some(failure) = &self.failure {
            return Err(Error::new(libc::EIO, "the volume is damaged").about(failure.as_str()));
        }
        if let (Access::Writing(heap), true) = (&mut self.heap, self.changed) {
            heap.psync()?;
            self.changed = false;
        }
        Ok(())
    }

    /// Holds psyncs back until [`end_group`](Volume::end_group), at most for `limit`, so that all
    /// changes until then become durable as one step. Changes before it become durable now.
    ///
    /// # Errors
    /// `EBUSY`: a group is open. As for [`sync`](Volume::sync).
    pub fn begin_group(&mut self, limit: Duration) -> Result<()> {
        if self.group.as_ref().is_some_and(|group| Instant::now() < group.until) {
            return Err(Error::new(libc::EBUSY, "a group is open"));
        }
        self.psync()?;
        self.group = Some(Group { until: Instant::now() + limit, expired: false });
        Ok(())
    }

    /// Ends the group, and makes its changes durable.
    ///
    /// # Errors
    /// `ETIMEDOUT`: its time was over, so that parts of it may have become durable on their own;
    /// now all of it is. `EINVAL`: there is none. As for [`sync`](Volume::sync).
    pub fn end_group(&mut self) -> Result<()> {
        let group = self.group.take().ok_or(Error::new(libc::EINVAL, "no group is open"))?;
        self.psync()?;
        match group.expired || Instant::now() >= group.until {
            true => Err(Error::new(libc::ETIMEDOUT, "the group's time was over")),
            false => Ok(()),
        }
    }

    /// Room in numbers. Counts the heap, which takes time for a large one.
    ///
    /// # Errors
    /// `EIO`.
    pub fn room(&self) -> Result<Room> {
        let inodes = self.look(|tree| Ok(tree.inodes.len() as u64))?;
        let stats = match &self.heap {
            Access::Writing(heap) => heap.stats()?,
            Access::Reading(heap) => heap.stats()?,
        };
        let free = if self.is_read_only() { 0 } else { self.pool.info()?.free };
        Ok(Room { size: stats.bytes + free, free: stats.free_bytes + stats.class_bytes + free, inodes })
    }

    /// The findings of the heap's own check.
    pub(crate) fn check_heap(&mut self) -> Vec<String> {
        let findings = match &mut self.heap {
            Access::Writing(heap) => heap.check(),
            Access::Reading(heap) => heap.check(),
        };
        findings.iter().map(|finding| format!("{finding:?}")).collect()
    }
}

const DAMAGED: Error = Error::new(libc::EIO, "the volume is damaged");

fn now() -> Time {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time { seconds: now.as_secs() as i64, nanoseconds: now.subsec_nanos().into() }
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume").field("pool", &self.pool.path()).field("name", &self.name).finish()
    }
}
