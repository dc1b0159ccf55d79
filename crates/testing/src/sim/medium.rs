use super::blocks::Blocks;
use super::config::SimConfig;
use super::errors::Errors;
use super::event::{Event, EventKind, Extent, Fill};
use super::fault::{Fault, Faults, OpKind, eio, killed};
use super::locks::LockTable;
use super::model::Model;
use super::pages::{PAGE, Pages};
use super::recording::Recording;
use super::watch::Watch;
use indelible_store::medium::MediumError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

pub(super) const SECTOR: u64 = 512;

/// A process's handle on a simulated medium, which holds its locks.
///
/// Threads of a process share a handle; another process has another [`handle`](SimMedium::handle).
/// A dropped handle releases its locks.
pub struct SimMedium {
    pub(super) shared: Arc<Mutex<Shared>>,
    pub(super) holder: u64,
    pub(super) writable: bool,
    len: AtomicU64,
    pub(super) config: SimConfig,
    /// Words that living processes share, apart from the bytes; undefined after a power cut.
    pub(super) words: Arc<[AtomicU64]>,
}

#[derive(Default)]
pub(super) struct Process {
    pub(super) dead: bool,
    pub(super) cursors: [u64; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Users {
    None,
    One(ThreadId),
    Several,
}

/// State of all handles. `volatile` is `recording` with all of it applied.
pub(super) struct Shared {
    pub(super) len: u64,
    pub(super) volatile: Pages,
    pub(super) recording: Recording,
    pub(super) blocks: Blocks,
    pub(super) locks: LockTable,
    pub(super) faults: Faults,
    pub(super) processes: BTreeMap<u64, Process>,
    pub(super) spoiled: BTreeSet<u64>,
    pub(super) watch: Option<Watch>,
    pub(super) errors: Errors,
    pub(super) evicts: bool,
    pub(super) seed: u64,
    pub(super) operations: u64,
    pub(super) evict_at: Option<u64>,
    pub(super) at_death: Option<Box<dyn FnMut() + Send>>,
    next_holder: u64,
    users: Users,
}

impl Shared {
    fn used(&mut self) {
        let own = thread::current().id();
        self.users = match self.users {
            Users::None => Users::One(own),
            Users::One(user) if user == own => return,
            _ => Users::Several,
        };
    }

    pub(super) fn log(&mut self, holder: u64, kind: EventKind, extents: Vec<Extent>) -> u64 {
        for extent in &extents {
            match &extent.fill {
                Fill::Bytes(bytes) => self.volatile.write(extent.offset, bytes),
                Fill::Zeros(len) => self.volatile.zero(extent.offset, *len),
            }
            if let Some(watch) = &mut self.watch {
                watch.written(extent.offset, extent.len());
            }
        }
        let seq = self.recording.next();
        let event = Event { kind, holder, extents };
        self.blocks.apply(seq, &event);
        self.recording.events.push(event);
        seq
    }

    pub(super) fn check_readable(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let sectors = offset / SECTOR..(offset + len).div_ceil(SECTOR);
        if self.spoiled.range(sectors).next().is_some() { Err(eio()) } else { Ok(()) }
    }

    pub(super) fn heal(&mut self, offset: u64, len: u64) -> Result<(), MediumError> {
        if self.spoiled.is_empty() {
            return Ok(());
        }
        let whole = offset.div_ceil(SECTOR)..((offset + len) / SECTOR).max(offset.div_ceil(SECTOR));
        let hit = self.spoiled.range(offset / SECTOR..(offset + len).div_ceil(SECTOR));
        if hit.clone().any(|sector| !whole.contains(sector)) {
            return Err(eio());
        }
        self.spoiled.retain(|sector| !whole.contains(sector));
        Ok(())
    }

    pub(super) fn kill(&mut self, holder: u64) {
        self.locks.release_all(holder);
        if let Some(process) = self.processes.get_mut(&holder) {
            process.dead = true;
        }
    }
}

impl SimMedium {
    #[must_use]
    pub fn new(len: u64, config: SimConfig) -> Self {
        Self::holding(Pages::default(), Blocks::reserved(config.disk), len, config)
    }

    #[must_use]
    pub fn from_bytes(bytes: &[u8], config: SimConfig) -> Self {
        let mut contents = Pages::default();
        contents.write(0, bytes);
        let len = bytes.len() as u64;
        Self::holding(contents, Blocks::all(config.disk, len), len, config)
    }

    pub(super) fn holding(contents: Pages, blocks: Blocks, len: u64, config: SimConfig) -> Self {
        let base = Model::settled(contents.clone(), blocks.clone(), len, config.tear_unit);
        let shared = Shared {
            len,
            volatile: contents,
            blocks,
            recording: Recording { config, base, first: 0, events: Vec::new() },
            locks: LockTable::default(),
            faults: Faults::default(),
            processes: BTreeMap::from([(0, Process::default())]),
            spoiled: BTreeSet::new(),
            watch: None,
            errors: Errors::default(),
            evicts: false,
            seed: config.seed,
            operations: 0,
            evict_at: None,
            at_death: None,
            next_holder: 1,
            users: Users::None,
        };
        let shared = Arc::new(Mutex::new(shared));
        let words = (0..PAGE / 8).map(|_| AtomicU64::default()).collect();
        Self { shared, holder: 0, writable: true, len: AtomicU64::new(len), config, words }
    }

    #[must_use]
    pub fn handle(&self) -> Self {
        self.open(true)
    }

    #[must_use]
    pub fn read_only_handle(&self) -> Self {
        self.open(false)
    }

    fn open(&self, writable: bool) -> Self {
        let mut shared = self.lock();
        let holder = shared.next_holder;
        shared.next_holder += 1;
        let cursors = [shared.errors.sample(); 2];
        shared.processes.insert(holder, Process { dead: false, cursors });
        let len = AtomicU64::new(shared.len);
        drop(shared);
        let shared = Arc::clone(&self.shared);
        let words = Arc::clone(&self.words);
        Self { shared, holder, writable, len, config: self.config, words }
    }

    /// Operations change the state after their last check: a panic leaves it whole.
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, kind: OpKind) -> Result<(MutexGuard<'_, Shared>, Option<Fault>), MediumError> {
        super::turns::pass();
        let mut shared = self.lock();
        if shared.processes.get(&self.holder).is_none_or(|process| process.dead) {
            return Err(killed());
        }
        shared.operations += 1;
        shared.used();
        if shared.evict_at.is_some_and(|at| at <= shared.operations) {
            shared.evict_at = None;
            shared.evict(false);
        }
        let fault = shared.faults.next(kind);
        if matches!(fault, Some(Fault::Kill | Fault::KillLate)) {
            shared.kill(self.holder);
            if let Some(at_death) = &mut shared.at_death {
                at_death();
            }
        }
        Ok((shared, fault))
    }

    /// A single thread does not yield, to save time slices.
    pub(super) fn let_others_run(&self, shared: MutexGuard<'_, Shared>) -> MutexGuard<'_, Shared> {
        let alone = shared.users != Users::Several;
        drop(shared);
        if !super::turns::pass() && !alone {
            thread::yield_now();
        }
        self.lock()
    }

    pub(super) fn length(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn know(&self, len: u64) {
        self.len.store(len, Ordering::Relaxed);
    }

    pub(super) fn check_bounds(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let size = self.length();
        match offset.checked_add(len) {
            Some(end) if end <= size => Ok(()),
            _ => Err(MediumError::OutOfBounds { offset, len, size }),
        }
    }

    pub(super) fn check_change(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        if !self.writable {
            return Err(MediumError::ReadOnly);
        }
        self.check_bounds(offset, len)
    }
}

impl Drop for SimMedium {
    fn drop(&mut self) {
        let mut shared = self.lock();
        shared.locks.release_all(self.holder);
        shared.processes.remove(&self.holder);
    }
}

impl fmt::Debug for SimMedium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimMedium")
            .field("len", &self.length())
            .field("config", &self.config)
            .field("holder", &self.holder)
            .field("writable", &self.writable)
            .finish_non_exhaustive()
    }
}
