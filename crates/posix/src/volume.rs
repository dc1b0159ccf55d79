//! An open volume: creation, opening, durability.
//!
//! Invariant: a change that panics, on damage, leaves the tree half changed in memory. Then
//! `failure` bars psyncs.

use crate::beside;
use crate::change::{Change, New};
use crate::error::{Error, Result};
use crate::format::{NAME, Time, Tree};
use indelible::{ErrorKind, Heap, HeapOptions, Pool, ReadHeap};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime};

const FIRST: u64 = 1 << 20;

/// A volume: directories and files in one object of a pool.
///
/// Changes are stores to memory; [`sync`](Volume::sync) makes them durable as one step. A drop or a
/// crash leaves the last `sync`. Inodes are numbers; the root directory is [`ROOT`](crate::ROOT).
/// Permissions are unchecked: under `pmo mount` the kernel checks them.
pub struct Volume {
    heap: Access,
    pool: Pool,
    name: String,
    held: HashMap<u64, u64>,
    changed: bool,
    failure: Option<String>,
    group: Option<Group>,
    clock: fn() -> Time,
}

/// One for each volume: its size is unimportant.
#[allow(clippy::large_enum_variant)]
enum Access {
    Writing(Heap),
    Reading(ReadHeap),
    Closed,
}

struct Group {
    until: Instant,
    expired: bool,
}

/// Outcome of [`Volume::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// All changes are durable.
    Durable,
    /// An open group's end makes them durable.
    Later,
}

/// Room of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that it has, or may get from its pool.
    pub size: u64,
    /// Free bytes among them.
    pub free: u64,
    /// Inodes.
    pub inodes: u64,
}

impl Volume {
    /// Makes an empty volume, durably. Its object grows within the pool.
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
    /// `EEXIST`: an object has this name. `ENOSPC`.
    pub fn create(pool: &Pool, name: &str, root: &New<'_>) -> Result<Volume> {
        let existed = pool.stat(name).is_ok();
        let exists = || Error::new(libc::EEXIST, "the pool has an object of this name").about(name);
        let mut volume = match Volume::attach(pool, name) {
            Err(_) if existed => return Err(exists()),
            attached => attached?,
        };
        // A crash of an earlier call may have left a blank object.
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

    /// Opens a volume for changes, in time independent of its size, and removes orphaned files.
    ///
    /// # Errors
    /// `ENOENT`; `EBUSY`: another process has it; `EINVAL`: the object is no volume; `EIO`: damage.
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

    /// Opens the last psync for reading, also beside a writer, or a [snapshot](Pool::snapshot).
    /// Where the pool has no room for that beside a writer, it is copied to memory, and the
    /// writer's next sync waits meanwhile.
    ///
    /// # Errors
    /// As for [`open`](Volume::open). `EBUSY` beside a writer: the pool is read-only here.
    pub fn open_read(pool: &Pool, name: &str) -> Result<Volume> {
        let attached = match pool.attach_snapshot(name) {
            Err(error) if matches!(error.kind(), ErrorKind::NoRoom | ErrorKind::ReadOnly) => {
                match pool.attach_read(name) {
                    Err(held) if held.kind() == ErrorKind::Held && error.kind() == ErrorKind::NoRoom => {
                        match beside::copied(pool, name).map_err(|error| error.about(name))? {
                            Some(copy) => Ok(copy),
                            None => pool.attach_read(name),
                        }
                    }
                    attached => attached,
                }
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

    /// Replaces the system's clock.
    pub fn set_clock(&mut self, clock: fn() -> Time) {
        self.clock = clock;
    }

    /// Its object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it was opened for reading.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        matches!(self.heap, Access::Reading(_))
    }

    /// The reason why changes ended: damage.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    pub(crate) fn look<R>(&self, look: impl FnOnce(&Tree<'_>) -> Result<R>) -> Result<R> {
        let looked = catch_unwind(AssertUnwindSafe(|| match &self.heap {
            Access::Writing(heap) => look(heap.root_ref::<Tree<'_>>(NAME)?),
            Access::Reading(heap) => look(heap.root_ref::<Tree<'_>>(NAME)?),
            Access::Closed => Err(CLOSED),
        }));
        looked.unwrap_or(Err(DAMAGED))
    }

    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Change<'_>) -> Result<R>) -> Result<R> {
        if let Some(failure) = &self.failure {
            return Err(Error::new(libc::EIO, "the volume is damaged").about(failure.as_str()));
        }
        let heap = match &mut self.heap {
            Access::Writing(heap) => heap,
            Access::Reading(_) => return Err(Error::new(libc::EROFS, "the volume is read-only")),
            Access::Closed => return Err(CLOSED),
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

    /// Keeps an inode that loses its last name until it was [released](Volume::release) as often: a
    /// program has it open.
    ///
    /// # Errors
    /// `ESTALE`: there is no such inode.
    pub fn hold(&mut self, inode: u64) -> Result<()> {
        self.look(|tree| tree.inode(inode).map(drop))?;
        *self.held.entry(inode).or_insert(0) += 1;
        Ok(())
    }

    /// Ends [holds](Volume::hold). The last one removes an inode without a name.
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

    /// Makes all changes durable by one psync. An open [group](Volume::begin_group) defers it to
    /// its end.
    ///
    /// # Errors
    /// `ENOSPC`: the changes stay in memory, and another call may succeed. `EIO`: the volume is
    /// damaged, or its medium failed.
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

    /// Ends a group, makes all changes durable, and detaches the object, so that the next open has
    /// nothing to recover. Later calls fail with `ENODEV`, except `close`, which does nothing.
    ///
    /// # Errors
    /// As for [`sync`](Volume::sync); the volume stays open.
    pub fn close(&mut self) -> Result<()> {
        self.group = None;
        self.psync()?;
        self.heap = Access::Closed;
        Ok(())
    }

    /// Defers psyncs until [`end_group`](Volume::end_group), or until `limit` is over, so that the
    /// group's changes become durable as one step.
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
    /// `ETIMEDOUT`: its time was over, and parts may have become durable before; now all is.
    /// `EINVAL`: there is no group. As for [`sync`](Volume::sync).
    pub fn end_group(&mut self) -> Result<()> {
        let group = self.group.take().ok_or(Error::new(libc::EINVAL, "no group is open"))?;
        self.psync()?;
        match group.expired || Instant::now() >= group.until {
            true => Err(Error::new(libc::ETIMEDOUT, "the group's time was over")),
            false => Ok(()),
        }
    }

    /// Counts the heap, slowly for a large one.
    ///
    /// # Errors
    /// `EIO`.
    pub fn room(&self) -> Result<Room> {
        let inodes = self.look(|tree| Ok(tree.inodes.len() as u64))?;
        let stats = match &self.heap {
            Access::Writing(heap) => heap.stats()?,
            Access::Reading(heap) => heap.stats()?,
            Access::Closed => return Err(CLOSED),
        };
        let free = if self.is_read_only() { 0 } else { self.pool.info()?.free };
        Ok(Room { size: stats.bytes + free, free: stats.free_bytes + stats.class_bytes + free, inodes })
    }

    pub(crate) fn check_heap(&mut self) -> Vec<String> {
        let findings = match &mut self.heap {
            Access::Writing(heap) => heap.check(),
            Access::Reading(heap) => heap.check(),
            Access::Closed => return vec![CLOSED.to_string()],
        };
        findings.iter().map(|finding| format!("{finding:?}")).collect()
    }
}

const DAMAGED: Error = Error::new(libc::EIO, "the volume is damaged");
const CLOSED: Error = Error::new(libc::ENODEV, "the volume is closed");

fn now() -> Time {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time { seconds: now.as_secs() as i64, nanoseconds: now.subsec_nanos().into() }
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume").field("pool", &self.pool.path()).field("name", &self.name).finish()
    }
}
