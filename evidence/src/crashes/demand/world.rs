use super::super::counts::Counts;
use super::OBJECTS;
use super::found::PAGES;
use super::ledger::{Ledger, Moment};
use super::memory::{Addresses, Memory, lock};
use super::process::{Life, Seat};
use super::{LARGE, TRANSACTIONAL};
use indelible::{Class, CreateOptions, EpochBounds, Error, ErrorKind, Pool, PoolOptions};
use indelible_testing::{SimConfig, SimMedium};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A durable transaction changed memory, and the pool refused its epoch: another process took the
/// room after the transaction had looked for it.
fn is_ahead(error: &Error) -> bool {
    error.kind() == ErrorKind::Poisoned && error.to_string().contains(": no room: ")
}

pub(super) type Verdict = Result<(), String>;

pub(super) struct Copied {
    pub(super) medium: SimMedium,
    pub(super) moment: Moment,
}

pub(super) struct Filler {
    pub(super) name: String,
    /// Its process died while it created or destroyed it.
    pub(super) in_doubt: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) process: usize,
    pub(super) left: bool,
}

pub(super) struct World {
    pub(super) medium: SimMedium,
    pub(super) memory: Memory,
    pub(super) config: SimConfig,
    pub(super) seed: u64,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) holders: Mutex<[Option<Holder>; OBJECTS.len()]>,
    pub(super) living: Mutex<BTreeSet<u32>>,
    pub(super) copy: Mutex<Option<Arc<Copied>>>,
    pub(super) filled: Mutex<Vec<Filler>>,
    pub(super) counts: Mutex<Counts>,
    pub(super) identity: u64,
    lives: AtomicU32,
    threads: AtomicU32,
    pub(super) names: AtomicU64,
    pub(super) faulted: AtomicBool,
    pub(super) at_once: AtomicBool,
    pub(super) turns: Mutex<Vec<u64>>,
    _addresses: Addresses,
}

impl Drop for World {
    fn drop(&mut self) {
        self.memory.clear();
    }
}

impl World {
    pub(super) fn new(
        medium: SimMedium,
        memory: Memory,
        (config, seed): (SimConfig, u64),
        (identity, addresses): (u64, Addresses),
    ) -> indelible::Result<World> {
        let world = World {
            medium,
            memory,
            config,
            seed,
            ledger: Mutex::default(),
            holders: Mutex::default(),
            living: Mutex::default(),
            copy: Mutex::default(),
            filled: Mutex::default(),
            counts: Mutex::default(),
            identity,
            lives: AtomicU32::new(0),
            threads: AtomicU32::new(0),
            names: AtomicU64::new(0),
            faulted: AtomicBool::new(false),
            at_once: AtomicBool::new(false),
            turns: Mutex::default(),
            _addresses: addresses,
        };
        world.prepare()?;
        Ok(world)
    }

    fn prepare(&self) -> indelible::Result<()> {
        let pool = self.open(Arc::new(self.medium.handle()), false)?;
        for (object, name) in OBJECTS.iter().enumerate() {
            let size = if object == LARGE { 4096 * PAGES as u64 } else { 4096 };
            let class = if object == TRANSACTIONAL { Class::Transactional } else { Class::OnDemand };
            pool.create_with(name, &CreateOptions::new(size).class(class))?;
        }
        drop(pool);
        self.medium.settle();
        self.watch();
        lock(&self.ledger).promise(&self.medium);
        Ok(())
    }

    pub(super) fn watch(&self) {
        let memory = self.memory.clone();
        self.medium.at_death(move || memory.save());
    }

    pub(super) fn open(&self, medium: Arc<SimMedium>, copy: bool) -> indelible::Result<Pool> {
        let path =
            PathBuf::from(format!("/program/{}/{}", self.identity, if copy { "copy" } else { "pool" }));
        let file = (u64::MAX, 2 * self.identity + u64::from(copy));
        let pool = PoolOptions::new().on_file(medium, (&path, Some(file)), false)?;
        pool.set_epochs(EpochBounds { every: Duration::MAX, bytes: 1 << 30 });
        Ok(pool)
    }

    pub(super) fn thread(&self) -> u32 {
        self.threads.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn promise(&self) {
        lock(&self.ledger).promise(&self.medium);
    }

    pub(super) fn is_at_once(&self) -> bool {
        self.at_once.load(Ordering::Relaxed)
    }

    pub(super) fn holder(&self, object: usize) -> Option<Holder> {
        lock(&self.holders)[object]
    }

    pub(super) fn hold(&self, object: usize, holder: Option<Holder>) {
        lock(&self.holders)[object] = holder;
    }

    /// Whether an error is allowed: of these kinds, after a failed operation, or for want of room.
    pub(super) fn expect(&self, life: &Life, error: &Error, kinds: &[ErrorKind]) -> Verdict {
        lock(&self.counts).refused += 1;
        let kind = error.kind();
        let full = [ErrorKind::NoRoom, ErrorKind::NoSpace, ErrorKind::Busy];
        let others = [ErrorKind::Held, ErrorKind::Busy, ErrorKind::AddressTaken, ErrorKind::Exists];
        let lawful = kinds.contains(&kind)
            || !lock(&self.filled).is_empty() && full.contains(&kind)
            || self.is_at_once() && others.contains(&kind)
            || self.is_at_once() && is_ahead(error);
        let never = [ErrorKind::Gone, ErrorKind::Damaged, ErrorKind::Internal];
        let faulted = self.faulted.load(Ordering::Relaxed) && !never.contains(&kind);
        match lawful || faulted || life.medium.is_dead() {
            true => Ok(()),
            false => Err(format!("{kind:?}: {error}")),
        }
    }

    pub(super) fn live<'s>(&self, seat: &'s mut Seat) -> Result<Option<&'s mut Life>, String> {
        if seat.life.is_none() {
            let medium = Arc::new(self.medium.handle());
            match self.open(medium.clone(), false) {
                Ok(pool) => {
                    let number = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
                    lock(&self.living).insert(number);
                    seat.life = Some(Life { number, objects: BTreeMap::new(), pool, medium });
                }
                Err(_) if self.faulted.load(Ordering::Relaxed) || medium.is_dead() => return Ok(None),
                Err(error) => return Err(format!("open: {error}")),
            }
        }
        Ok(seat.life.as_mut())
    }

    pub(super) fn die(&self, seat: &mut Seat) -> Verdict {
        let Some(life) = seat.life.take() else { return Ok(()) };
        self.memory.save();
        life.medium.kill();
        let Life { number, objects, pool, medium } = life;
        drop((objects, pool, medium));
        lock(&self.living).remove(&number);
        for holder in lock(&self.holders).iter_mut() {
            *holder = holder.filter(|holder| holder.process != seat.number);
        }
        lock(&self.counts).deaths += 1;
        if self.is_at_once() {
            self.memory.forget();
            return Ok(());
        }
        self.memory.restore()
    }
}
