//! Psync cuts beside storing threads, on a simulated medium.
//!
//! The mapped half holds stores, stages copies of changed lines, releases stores, and commits; here
//! a lock on plain bytes stands for held pages. The psync makes exactly the stores before the hold
//! durable.

use crate::pool::{Borrowing, Lines, Snapshot, contents, page, process, take};
use crate::sim::{SimMedium, Turns};
use indelible_store::error::{Result, StoreError};
use indelible_store::format::PAGE;
use indelible_store::lane::Batch;
use indelible_store::medium::Medium;
use indelible_store::store::{Changes, Primary, Store, Writer, stage};
use indelible_store::table::{CreateOptions, Key};
use indelible_store::with_seed;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

const OBJECTS: [&str; 3] = ["a", "b", "c"];
const SIZE: u64 = 12_000;

#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    pub threads: usize,
    pub cuts: usize,
    /// Whether stores wait while a cut is staged; if not, a judge must notice.
    pub held: bool,
    pub seed: u64,
}

pub struct Made {
    /// Content of the objects at first and at each cut. Mark `n` promises state `n`.
    pub states: Vec<Snapshot>,
    /// Stores between a cut's stage and the end of its commit.
    pub beside: u64,
    pub waited: u64,
}

type Memory = [Vec<u8>; OBJECTS.len()];

struct Process<'m> {
    medium: &'m SimMedium,
    memory: Mutex<Memory>,
    committing: AtomicBool,
    done: AtomicBool,
    beside: AtomicU64,
    waited: AtomicU64,
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Source<'a, 'm> {
    process: &'a Process<'m>,
    held: Option<&'a Memory>,
    object: usize,
}

impl Changes for Source<'_, '_> {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        let (source, mut end) = (Lines::default(), 0);
        for number in 0..SIZE.div_ceil(PAGE) {
            let old = page(primary, number)?;
            let mut new = old;
            let mut copy = |memory: &Memory| {
                let bytes =
                    memory[self.object].chunks(PAGE as usize).nth(number as usize).unwrap_or_default();
                new[..bytes.len()].copy_from_slice(bytes);
            };
            match self.held {
                Some(memory) => copy(memory),
                None => copy(&self.process.memory()),
            }
            end = end.max(take(primary, batch, Borrowing::never(&source), number, &old, &new));
        }
        Ok(end)
    }
}

impl Process<'_> {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        loop {
            match self.memory.try_lock() {
                Ok(memory) => return memory,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    self.waited.fetch_add(1, Ordering::Relaxed);
                    self.pass();
                }
            }
        }
    }

    fn pass(&self) {
        let _ = self.medium.read(0, &mut [0]);
    }

    fn store(&self, mut rng: fastrand::Rng) {
        while !self.done.load(Ordering::Relaxed) {
            let (object, value) = (rng.usize(..OBJECTS.len()), rng.u8(..));
            let len = [1, 8, 64, 700][rng.usize(..4)];
            let at = rng.usize(..SIZE as usize - len);
            for object in [object, (object + 1) % OBJECTS.len()] {
                self.memory()[object][at..at + len].fill(value);
                let beside = u64::from(self.committing.load(Ordering::Relaxed));
                self.beside.fetch_add(beside, Ordering::Relaxed);
                self.pass();
            }
        }
    }
}

impl Cuts {
    /// Makes objects in a fresh pool, then cuts. The log begins when the objects exist.
    pub fn run(&self, medium: &SimMedium) -> Result<Made> {
        with_seed(self.seed, || {
            let store = Store::open(Arc::new(medium.handle()), process(1))?;
            let how = CreateOptions { size: SIZE, ..CreateOptions::default() };
            OBJECTS.iter().try_for_each(|name| store.create(name, &how).map(drop))?;
            let writers = OBJECTS.map(|name| store.attach_writer(name, Key::default()));
            let mut writers = writers.into_iter().collect::<Result<Vec<_>>>()?;
            medium.settle();
            medium.mark(0);
            self.run_threads(medium, &store, &mut writers)
        })
    }

    fn run_threads(&self, medium: &SimMedium, store: &Arc<Store>, writers: &mut [Writer]) -> Result<Made> {
        let mut first = Snapshot::new();
        for writer in writers.iter() {
            let entry = &writer.object().entry;
            let bytes = contents(store, writer.object())?;
            first.insert(entry.name(), (entry.id, entry.address.get(), bytes));
        }
        let process = Process {
            medium,
            memory: Mutex::new(OBJECTS.map(|name| first[name].2.clone())),
            committing: AtomicBool::new(false),
            done: AtomicBool::new(false),
            beside: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        };
        let turns = Turns::new(self.threads + 1, self.seed);
        let states = std::thread::scope(|scope| {
            let process = &process;
            for thread in 0..self.threads {
                let turns = turns.clone();
                let rng = fastrand::Rng::with_seed(self.seed ^ (thread as u64 + 1) << 32);
                scope.spawn(move || turns.take_part(thread + 1, || process.store(rng)));
            }
            turns.take_part(0, || {
                let _done = Done(&process.done);
                with_seed(self.seed, || self.cut(process, first, writers))
            })
        })?;
        let [beside, waited] = [process.beside, process.waited].map(AtomicU64::into_inner);
        Ok(Made { states, beside, waited })
    }

    fn cut(&self, process: &Process<'_>, first: Snapshot, writers: &mut [Writer]) -> Result<Vec<Snapshot>> {
        let mut states = vec![first];
        for number in 1..=self.cuts {
            (0..4).for_each(|_| process.pass());
            let memory = process.memory();
            let mut state = states[0].clone();
            for (name, bytes) in OBJECTS.iter().zip(&*memory) {
                state.get_mut(*name).ok_or(StoreError::NotFound)?.2.clone_from(bytes);
            }
            states.push(state);
            let held = self.held.then_some(memory);
            let mut sources: Vec<Source<'_, '_>> =
                (0..OBJECTS.len()).map(|object| Source { process, held: held.as_deref(), object }).collect();
            let parts = writers.iter_mut().zip(&mut sources);
            let parts = parts.map(|(writer, source)| (writer, source as &mut dyn Changes));
            let staged = stage(parts, None)?;
            drop(sources);
            process.committing.store(true, Ordering::Relaxed);
            drop(held);
            staged.commit()?;
            process.committing.store(false, Ordering::Relaxed);
            process.medium.mark(number as u64);
        }
        Ok(states)
    }
}
