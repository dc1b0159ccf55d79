//! Programs of transactions: processes commit changes of several objects, psync another one, fail,
//! detach and die.
//!
//! The model has a state per commit. A power cut leaves one from the last acknowledged commit to
//! the last that the store was told. The psynced object has one state, or two after a failed psync.
//! After a failure more calls precede the detach: any acknowledged one must hold.

use crate::pool::{Snapshot, contents, process, psync};
use crate::seed::Seeded;
use crate::sim::{CrashImage, Fault, OpKind, SimMedium};
use indelible_store::error::StoreError;
use indelible_store::format::LINE;
use indelible_store::store::{ChangedLine, Commits, SnapshotOf, Store, Writer};
use indelible_store::table::{Class, CreateOptions, Key};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

const OBJECTS: [&str; 3] = ["a", "b", "c"];
const PLAIN: &str = "plain";
const SIZE: u64 = 9000;

#[derive(Clone, Copy, Debug)]
pub struct Transactions {
    pub steps: usize,
    pub fails: bool,
    pub dies: bool,
    pub seed: u64,
}

type State = [Vec<u8>; OBJECTS.len()];

struct Moment {
    states: RangeInclusive<usize>,
    plain: Vec<Vec<u8>>,
}

#[derive(Default)]
pub struct Committed {
    states: Vec<State>,
    moments: Vec<Moment>,
    pub commits: u64,
    pub failures: u64,
    pub deaths: u64,
}

impl Committed {
    pub fn judge(&self, image: &CrashImage, found: &Snapshot) -> Result<(), String> {
        let moment = &self.moments[image.last_mark().unwrap_or(0) as usize];
        let bytes = |name: &str| found.get(name).map(|(_, _, bytes)| bytes.as_slice()).unwrap_or_default();
        let is = |state: &State| OBJECTS.iter().zip(state).all(|(name, state)| bytes(name) == state);
        if !moment.states.clone().any(|state| is(&self.states[state])) {
            let other: Vec<usize> = (0..self.states.len()).filter(|state| is(&self.states[*state])).collect();
            return Err(format!("none of the states {:?}; it is one of {other:?}", moment.states));
        }
        match moment.plain.iter().any(|plain| bytes(PLAIN) == plain) {
            true => Ok(()),
            false => Err("the object that is psynced holds what no psync left".into()),
        }
    }
}

struct Attached {
    medium: Arc<SimMedium>,
    store: Arc<Store>,
    commits: Commits,
    slots: [u64; OBJECTS.len()],
    plain: Option<Writer>,
}

struct Run<'a> {
    program: Transactions,
    medium: &'a SimMedium,
    rng: Seeded,
    process: Attached,
    /// The state before commit 1 of this attachment.
    base: usize,
    acknowledged: u64,
    told: u64,
    plain: Vec<Vec<u8>>,
    snapshots: usize,
    broken: bool,
    pids: u32,
    out: Committed,
}

type Verdict = Result<(), String>;

impl Transactions {
    /// Runs the program on a pool without objects and marks its promises.
    pub fn run(&self, medium: &SimMedium) -> Result<Committed, String> {
        let text = |error: StoreError| format!("before the first step: {error}");
        let store = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
        for name in OBJECTS.iter().chain([&PLAIN]) {
            let class = if *name == PLAIN { Class::Psync } else { Class::Transactional };
            let how = CreateOptions { size: SIZE, class, ..CreateOptions::default() };
            store.create(name, &how).map_err(text)?;
        }
        drop(store);
        medium.settle();
        let blank = vec![0; SIZE as usize];
        let mut run = Run {
            program: *self,
            medium,
            rng: Seeded::new(self.seed),
            process: attach(medium, 2).map_err(text)?.0,
            base: 0,
            acknowledged: 0,
            told: 0,
            plain: vec![blank.clone()],
            snapshots: 0,
            broken: false,
            pids: 2,
            out: Committed { states: vec![std::array::from_fn(|_| blank.clone())], ..Committed::default() },
        };
        run.promise();
        for step in 0..self.steps {
            run.step().map_err(|what| format!("step {step}: {what}"))?;
        }
        Ok(run.out)
    }
}

fn attach(medium: &SimMedium, pid: u32) -> indelible_store::error::Result<(Attached, State, Vec<u8>)> {
    let medium = Arc::new(medium.handle());
    let store = Store::open(medium.clone(), process(pid))?;
    attach_in(medium, store)
}

fn attach_in(
    medium: Arc<SimMedium>,
    store: Arc<Store>,
) -> indelible_store::error::Result<(Attached, State, Vec<u8>)> {
    let commits = Commits::default();
    let (mut slots, mut state) = ([0; OBJECTS.len()], State::default());
    for ((slot, name), bytes) in slots.iter_mut().zip(OBJECTS).zip(&mut state) {
        let writer = store.attach_transactional_writer(name, Key::default())?;
        *slot = writer.object().offset;
        *bytes = contents(&store, writer.object())?;
        commits.join(writer)?;
    }
    let plain = store.attach_writer(PLAIN, Key::default())?;
    let bytes = contents(&store, plain.object())?;
    Ok((Attached { medium, store, commits, slots, plain: Some(plain) }, state, bytes))
}

impl Run<'_> {
    fn promise(&mut self) {
        let states = self.base + self.acknowledged as usize..=self.base + self.told as usize;
        self.out.moments.push(Moment { states, plain: self.plain.clone() });
        self.medium.mark(self.out.moments.len() as u64 - 1);
    }

    fn step(&mut self) -> Verdict {
        match self.rng.u8(0..20) {
            0..11 => self.commit(),
            11..14 => self.psync(),
            14 => self.snapshot(),
            15..17 => self.go_on(),
            17 if self.program.dies => self.die(),
            _ if self.broken => self.go_on(),
            _ => self.wait(self.told),
        }
    }

    fn call<R>(
        &mut self,
        call: impl FnOnce(&mut Self) -> indelible_store::error::Result<R>,
    ) -> Result<Option<R>, String> {
        let planned = self.program.fails && self.rng.u8(0..8) == 0;
        if planned {
            let kinds = [OpKind::WriteDurable, OpKind::Barrier, OpKind::Write];
            let faults = [Fault::Io, Fault::NoSpace, Fault::After, Fault::Short];
            let (kind, fault) = (kinds[self.rng.usize(0..3)], faults[self.rng.usize(0..4)]);
            self.medium.fail_at(kind, self.rng.u64(0..4), fault);
        }
        let result = call(self);
        let lawful = planned || self.broken || self.process.medium.error_due();
        self.medium.clear_faults();
        match result {
            Ok(done) => Ok(Some(done)),
            Err(StoreError::NoRoom { .. } | StoreError::NoLane { .. }) => Ok(None),
            Err(_) if lawful => {
                self.broken = true;
                self.out.failures += 1;
                Ok(None)
            }
            Err(error) => Err(format!("{error:?} without a failure")),
        }
    }

    fn next(&mut self) -> (u64, Vec<ChangedLine>) {
        let mut state = self.out.states[self.base + self.told as usize].clone();
        let most = [0, 1, 2, 5, 60][self.rng.usize(0..5)];
        let places: BTreeSet<(usize, u64)> =
            (0..most).map(|_| (self.rng.usize(0..OBJECTS.len()), self.rng.u64(0..SIZE / LINE))).collect();
        let mut lines = Vec::new();
        for (object, line) in places {
            let (offset, value) = (line * LINE, self.rng.u8(1..));
            let end = state[object].len().min((offset + LINE) as usize);
            state[object][offset as usize..end].fill(value);
            let object = self.process.slots[object];
            lines.push(ChangedLine { object, offset, bytes: [value; LINE as usize] });
        }
        self.told += 1;
        self.out.commits += 1;
        self.out.states.push(state);
        (self.told, lines)
    }

    fn commit(&mut self) -> Verdict {
        if self.process.commits.check().is_err() {
            return self.refused();
        }
        let count = self.rng.usize(1..5);
        let mut told: Vec<_> = (0..count).map(|_| self.next()).collect();
        self.promise();
        let some = told[self.rng.usize(0..count)].0;
        self.rng.shuffle(&mut told);
        for (number, lines) in told {
            if lines.is_empty() {
                self.process.commits.skip(number);
                continue;
            }
            let places = lines.iter().map(|line| (line.object, line.offset));
            let short = self.process.commits.shortage(lines.len(), || places);
            if short > 0 {
                self.process.commits.make_room(short).map_err(|error| format!("room: {error:?}"))?;
            }
            let told = self.process.commits.tell(number, lines);
            told.map_err(|error| format!("{error:?}, and check said nothing"))?;
        }
        if self.rng.u8(0..4) == 0 { Ok(()) } else { self.wait(some) }
    }

    fn wait(&mut self, number: u64) -> Verdict {
        if self.call(|run| run.process.commits.wait(number))?.is_some() {
            self.acknowledged = self.acknowledged.max(number);
        }
        self.promise();
        Ok(())
    }

    fn refused(&mut self) -> Verdict {
        if !self.broken {
            return Err("transactions are refused without a failure".into());
        }
        let bytes = [1; LINE as usize];
        let lines = vec![ChangedLine { object: self.process.slots[0], offset: 0, bytes }];
        if self.process.commits.tell(self.told + 1, lines).is_ok() {
            return Err("a transaction is taken after check has refused".into());
        }
        // An acknowledged number may be acknowledged again.
        let some = self.rng.u64(0..self.told + 1);
        self.wait(some)?;
        self.go_on()
    }

    fn psync(&mut self) -> Verdict {
        let (at, value) = (self.rng.u64(0..SIZE - 200), self.rng.u8(1..));
        let len = self.rng.usize(1..200);
        let mut after = self.plain.clone();
        for plain in &mut after {
            plain[at as usize..at as usize + len].fill(value);
        }
        let before = std::mem::take(&mut self.plain);
        self.plain = before.iter().chain(&after).cloned().collect();
        self.promise();
        let bytes = vec![value; len];
        let done = self.call(|run| match &mut run.process.plain {
            Some(writer) => psync(writer, &[(at, &bytes)]),
            None => Ok(()),
        })?;
        if done.is_some() {
            self.plain = after;
        }
        self.promise();
        Ok(())
    }

    fn snapshot(&mut self) -> Verdict {
        if self.snapshots == 3 {
            return Ok(());
        }
        self.snapshots += 1;
        let (object, name) = (OBJECTS[self.rng.usize(0..OBJECTS.len())], format!("then {}", self.snapshots));
        let of = SnapshotOf { object, key: Key::default(), name: &name };
        self.call(|run| run.process.store.snapshot(&[of])).map(drop)
    }

    fn go_on(&mut self) -> Verdict {
        let left = self.call(|run| {
            let mut first = Ok(());
            for slot in run.process.slots {
                let (writer, flushed) = run.process.commits.leave(slot);
                first = first.and(flushed);
                first = first.and(writer.map_or(Ok(()), Writer::detach));
            }
            first.and(run.process.plain.take().map_or(Ok(()), Writer::detach))
        })?;
        if left.is_some() {
            self.acknowledged = self.told;
        }
        self.promise();
        let again = attach_in(self.process.medium.clone(), self.process.store.clone());
        match again {
            Ok(found) => self.found(found),
            Err(_) if self.broken => self.die(),
            Err(error) => Err(format!("attach: {error:?} without a failure")),
        }
    }

    fn die(&mut self) -> Verdict {
        self.process.medium.kill();
        self.pids += 1;
        self.out.deaths += 1;
        let found = attach(self.medium, self.pids).map_err(|error| format!("the next process: {error:?}"))?;
        self.found(found)
    }

    fn found(&mut self, (process, state, plain): (Attached, State, Vec<u8>)) -> Verdict {
        let (least, most) = (self.base + self.acknowledged as usize, self.base + self.told as usize);
        let is = |number: &usize| self.out.states[*number] == state;
        if !(least..=most).any(|number| is(&number)) {
            let other: Vec<usize> = (0..self.out.states.len()).filter(is).collect();
            return Err(format!("an attach shows none of the states {least} to {most}: one of {other:?}"));
        }
        if !self.plain.contains(&plain) {
            return Err("an attach shows what no psync left".into());
        }
        std::mem::forget(std::mem::replace(&mut self.process, process));
        self.out.states.push(state);
        (self.base, self.acknowledged, self.told) = (self.out.states.len() - 1, 0, 0);
        self.plain = vec![plain];
        self.broken = false;
        self.promise();
        Ok(())
    }
}
