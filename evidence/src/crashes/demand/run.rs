use super::super::counts::Counts;
use super::ledger::{Ledger, Moment};
use super::memory::{Addresses, Memory, lock};
use super::others::is_no_filler;
use super::process::Seat;
use super::world::{Filler, Verdict, World};
use super::{OBJECTS, PROCESSES, Step};
use indelible_store::error::StoreError;
use indelible_store::store::{FormatOptions, Store, Window};
use indelible_store::table::Key;
use indelible_store::{Selected, with_seed};
use indelible_testing::oracle::Program;
use indelible_testing::pool::{Snapshot, process, recover_all, snapshot};
use indelible_testing::sim::Turns;
use indelible_testing::{Choice, Fault, OpKind, SimConfig, SimMedium};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const POOL: u64 = 4 << 20;

pub(super) struct Segment {
    pub(super) medium: SimMedium,
    pub(super) moments: Vec<Moment>,
}

pub(super) struct Done {
    pub(super) segments: Vec<Segment>,
    ledger: Ledger,
    pub(super) counts: Counts,
    pub(super) turns: Vec<u64>,
}

impl Done {
    pub(super) fn judge(&self, moment: &Moment, pool: &Snapshot) -> Verdict {
        self.ledger.judge(moment, &self.ledger.found_in(pool)?)?;
        pool.iter().try_for_each(|(name, (_, _, bytes))| self.ledger.judge_snapshot(name, bytes))
    }
}

pub(super) fn run(program: &Program<Step>, config: SimConfig, seed: u64) -> Result<Done, String> {
    static PROGRAMS: AtomicU64 = AtomicU64::new(0);
    let identity = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let addresses = Addresses::take();
    let medium = SimMedium::new(POOL, config);
    let text = |error: &dyn std::fmt::Display| format!("before the first step: {error}");
    let apart = u64::from(std::process::id()) << 32 ^ identity;
    let pool = with_seed(seed ^ apart.wrapping_mul(0x9e37_79b9_7f4a_7c15), || {
        let window = Some(Window { start: addresses.start(), len: 1 << 40 });
        let how = FormatOptions { zeroed: true, window, ..FormatOptions::default() };
        let store = Store::format(Arc::new(medium.handle()), process(1), &how)?;
        Ok(store.id())
    });
    let pool = pool.map_err(|error: StoreError| text(&error))?;
    medium.reseed(seed);
    let made = World::new(medium, Memory::of(pool), (config, seed), (identity, addresses));
    let mut world = made.map_err(|error| text(&error))?;
    let mut seats: Vec<_> =
        (0..PROCESSES).map(|number| Mutex::new(Seat { number, thread: 0, life: None })).collect();
    let mut segments = Vec::new();
    let mut done = Ok(());
    for (nth, (process, step)) in program.0.iter().enumerate() {
        done = match step {
            Step::PowerCut { seed } => world.cut_power(&mut seats, *seed).map(|old| segments.push(old)),
            step => world.perform(&seats, *process, step),
        };
        if let Err(cause) = done {
            done = Err(format!("step {nth}, process {process}: {step:?}: {cause}"));
            break;
        }
    }
    for seat in &seats {
        world.die(&mut lock(seat))?;
    }
    done?;
    let mut ledger = std::mem::take(&mut *lock(&world.ledger));
    let moments = std::mem::take(&mut ledger.moments);
    let (counts, turns) = (*lock(&world.counts), lock(&world.turns).clone());
    segments.push(Segment { medium: world.medium.handle(), moments });
    Ok(Done { segments, ledger, counts, turns })
}

impl World {
    fn perform(&self, seats: &[Mutex<Seat>], process: usize, step: &Step) -> Verdict {
        match step {
            Step::AtOnce { own, other, its, switches } if *other != process => {
                self.both(&seats[process], own, (&seats[*other], its), *switches)
            }
            Step::AtOnce { .. } => Ok(()),
            Step::DieIn { step, kind, nth, late } => {
                let fault = if *late { Fault::KillLate } else { Fault::Kill };
                self.with_fault(seats, process, step, (*kind, *nth, fault))
            }
            Step::FailIn { step, kind, nth, fault } => {
                self.with_fault(seats, process, step, (*kind, *nth, *fault))
            }
            step => self.alone(&mut lock(&seats[process]), step),
        }
    }

    fn with_fault(
        &self,
        seats: &[Mutex<Seat>],
        process: usize,
        step: &Step,
        (kind, nth, fault): (OpKind, u64, Fault),
    ) -> Verdict {
        let met = self.medium.faults_met();
        self.medium.fail_at(kind, nth, fault);
        if !matches!(fault, Fault::Kill | Fault::KillLate) {
            self.faulted.store(true, Ordering::Relaxed);
        }
        let done = self.perform(seats, process, step);
        self.medium.clear_faults();
        lock(&self.counts).failures += u64::from(self.medium.faults_met() > met);
        done
    }

    fn both(
        &self,
        own: &Mutex<Seat>,
        own_steps: &[Step],
        (its, its_steps): (&Mutex<Seat>, &[Step]),
        switches: [u64; 2],
    ) -> Verdict {
        self.at_once.store(true, Ordering::Relaxed);
        let (turns, selected) = (Turns::switching(switches), Selected::here());
        let done: Vec<Verdict> = std::thread::scope(|scope| {
            let threads: Vec<_> = [(own, own_steps), (its, its_steps)]
                .into_iter()
                .enumerate()
                .map(|(number, (seat, steps))| {
                    let (turns, thread) = (turns.clone(), self.thread());
                    let seed = self.seed ^ u64::from(thread) << 40;
                    let work = move || {
                        let mut seat = lock(seat);
                        seat.thread = thread;
                        let done = steps.iter().try_for_each(|step| self.alone(&mut seat, step));
                        seat.thread = 0;
                        done
                    };
                    scope.spawn(move || selected.run(|| with_seed(seed, || turns.take_part(number, work))))
                })
                .collect();
            let panicked = |_| Err("a process panicked".to_owned());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        self.at_once.store(false, Ordering::Relaxed);
        *lock(&self.turns) = turns.taken();
        lock(&self.counts).together += 1;
        done.into_iter().collect()
    }

    fn alone(&self, seat: &mut Seat, step: &Step) -> Verdict {
        lock(&self.counts).steps += 1;
        let done = self.step(seat, step);
        if seat.life.as_ref().is_some_and(|life| life.medium.is_dead()) {
            self.die(seat)?;
        }
        done
    }

    fn step(&self, seat: &mut Seat, step: &Step) -> Verdict {
        match step {
            Step::Attach { object, apart } => self.attach(seat, *object, *apart),
            Step::Look { objects } => self.look_at(seat, objects),
            Step::Commit { objects, wide } => self.commit(seat, objects, *wide),
            Step::Sync { object, from } => self.sync(seat, *object, *from),
            Step::Psync { object } => self.psync(seat, *object),
            Step::Pending { object } => self.pending(seat, *object),
            Step::Detach { object } => self.detach(seat, *object),
            Step::Leave { object, within } => self.leave(seat, *object, *within),
            Step::Die => self.die(seat),
            Step::AtOnce { .. } | Step::DieIn { .. } | Step::FailIn { .. } | Step::PowerCut { .. } => Ok(()),
            step => self.other(seat, step),
        }
    }

    fn cut_power(&mut self, seats: &mut [Mutex<Seat>], seed: u64) -> Result<Segment, String> {
        let image = self.medium.power_cut(Choice::Random(seed));
        for seat in seats {
            self.die(&mut lock(seat))?;
        }
        self.memory.clear();
        let next = image.medium();
        let text = |error: StoreError| format!("after the power cut: {error}");
        let store = Store::open(Arc::new(next.handle()), process(9)).map_err(text)?;
        recover_all(&store).map_err(text)?;
        for name in OBJECTS {
            let number = store.memory_number().map_err(text)?;
            let mut writer = store.attach_on_demand_writer(name, Key::default(), number).map_err(text)?;
            writer.forget_memory();
            writer.detach().map_err(text)?;
        }
        let pool = snapshot(&store).map_err(text)?;
        drop(store);
        next.settle();
        next.reseed(seed);
        let old = std::mem::replace(&mut self.medium, next);
        self.watch();
        let mut ledger = lock(&self.ledger);
        let found = ledger.found_in(&pool)?;
        let last = ledger.moments.last().copied().unwrap_or_default();
        ledger.judge(&last, &found).map_err(|cause| format!("after the power cut: {cause}"))?;
        let moments = ledger.moments.clone();
        ledger.cut(&found);
        ledger.promise(&self.medium);
        drop(ledger);
        let fillers = pool.keys().filter(|name| !is_no_filler(name));
        *lock(&self.filled) = fillers.map(|name| Filler { name: name.clone(), in_doubt: false }).collect();
        self.faulted.store(false, Ordering::Relaxed);
        Ok(Segment { medium: old, moments })
    }
}
