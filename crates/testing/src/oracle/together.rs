//! Concurrent programs: several actors, each with objects of its own, and one table.
//!
//! Actors are processes that take [turns](crate::sim), or threads of one process that join each
//! other's commits. Only its actor changes an object: it has one state after a success, two after a
//! failure.

use crate::pool::{Edits, Snapshot, contents, process, psync};
use crate::sim::{CrashImage, Fault, OpKind, SimMedium, Turns};
use indelible_store::error::StoreError;
use indelible_store::store::{Store, Writer};
use indelible_store::table::{CreateOptions, Key};
use indelible_store::{Selected, with_seed};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Processes,
    /// Threads of one process, scheduled by the machine.
    Threads,
}

#[derive(Clone, Copy, Debug)]
pub struct Together {
    pub how: How,
    pub actors: usize,
    pub steps: usize,
    pub fails: bool,
    pub seed: u64,
}

type State = BTreeMap<String, Vec<u8>>;

struct Entry {
    actor: usize,
    states: Vec<State>,
}

pub struct Shared {
    entries: Vec<Entry>,
    actors: usize,
    pub calls: u64,
    pub failures: u64,
    /// Batches that joined others in one durable write.
    pub joined: u64,
}

impl Shared {
    pub fn judge(&self, image: &CrashImage, found: &Snapshot) -> Result<(), String> {
        let mut latest: Vec<&[State]> = vec![&[]; self.actors];
        for mark in image.marks() {
            let entry = &self.entries[*mark as usize];
            latest[entry.actor] = &entry.states;
        }
        for (actor, states) in latest.iter().enumerate() {
            let own: State = found
                .iter()
                .filter(|(name, _)| name.starts_with(&prefix(actor)))
                .map(|(name, (_, _, bytes))| (name.clone(), bytes.clone()))
                .collect();
            if !states.contains(&own) {
                return Err(format!("actor {actor}: {}", difference(&own, states)));
            }
        }
        Ok(())
    }
}

fn difference(own: &State, states: &[State]) -> String {
    let mut text = format!("{:?} is none of {} states:", own.keys(), states.len());
    for state in states {
        for (name, bytes) in state {
            text += &match own.get(name) {
                None => format!(" {name} is missing,"),
                Some(found) if found.len() != bytes.len() => {
                    format!(" {name} has {} bytes, not {},", found.len(), bytes.len())
                }
                Some(found) => match found.iter().zip(bytes).position(|(a, b)| a != b) {
                    Some(at) => format!(" {name} differs at {at} ({} for {}),", found[at], bytes[at]),
                    None => String::new(),
                },
            };
        }
        text += ";";
    }
    text
}

fn prefix(actor: usize) -> String {
    format!("{actor}:")
}

struct Actor<'a> {
    number: usize,
    medium: &'a SimMedium,
    store: Arc<Store>,
    shared: &'a Mutex<Shared>,
    rng: fastrand::Rng,
    writer: Option<Writer>,
    shadow: Vec<u8>,
    states: Vec<State>,
    fails: bool,
}

type Verdict = Result<(), String>;

impl Together {
    /// Runs the actors on a fresh pool; the log begins when their objects exist.
    pub fn run(&self, medium: &SimMedium) -> Result<Shared, String> {
        with_seed(self.seed, || self.run_seeded(medium))
    }

    fn run_seeded(&self, medium: &SimMedium) -> Result<Shared, String> {
        let text = |error: StoreError| format!("before the actors: {error}");
        let first = Store::open(Arc::new(medium.handle()), process(1)).map_err(text)?;
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut shared =
            Shared { entries: Vec::new(), actors: self.actors, calls: 0, failures: 0, joined: 0 };
        for actor in 0..self.actors {
            let size = [3000, 9000, 70_000][rng.usize(..3)];
            let how = CreateOptions { size, ..CreateOptions::default() };
            first.create(&(prefix(actor) + "main"), &how).map_err(text)?;
            let state = State::from([(prefix(actor) + "main", vec![0; size as usize])]);
            shared.entries.push(Entry { actor, states: vec![state] });
        }
        medium.settle();
        medium.evict_by_itself(true);
        (0..self.actors as u64).for_each(|mark| medium.mark(mark));
        let mut actors = Vec::new();
        let shared = Mutex::new(shared);
        for number in 0..self.actors {
            let store = match self.how {
                How::Threads => first.clone(),
                How::Processes => {
                    Store::open(Arc::new(medium.handle()), process(20 + number as u32)).map_err(text)?
                }
            };
            let states = lock(&shared).entries[number].states.clone();
            let shadow = Vec::new();
            let rng = fastrand::Rng::with_seed(rng.u64(..));
            let (writer, fails) = (None, self.fails);
            actors.push(Actor { number, medium, store, shared: &shared, rng, writer, shadow, states, fails });
        }
        drop(first);
        let turns = (self.how == How::Processes).then(|| Turns::new(self.actors, self.seed));
        let selected = Selected::here();
        let verdicts: Vec<Verdict> = std::thread::scope(|scope| {
            let threads: Vec<_> = actors
                .into_iter()
                .map(|mut actor| {
                    let turns = turns.clone();
                    scope.spawn(move || {
                        let number = actor.number;
                        let own = self.seed ^ (number as u64 + 1) << 32;
                        let mut work = move || {
                            let verdict = (0..self.steps).try_for_each(|_| actor.step());
                            actor.leave();
                            verdict
                        };
                        let verdict = selected.run(|| {
                            with_seed(own, || match turns {
                                Some(turns) => turns.take_part(number, work),
                                None => work(),
                            })
                        });
                        verdict.map_err(|cause| format!("actor {number}: {cause}"))
                    })
                })
                .collect();
            let panicked = |_| Err("an actor panicked".into());
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        medium.clear_faults();
        verdicts.into_iter().collect::<Verdict>()?;
        Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Actor<'_> {
    fn promise(&self, states: &[State]) {
        let mut shared = lock(self.shared);
        shared.entries.push(Entry { actor: self.number, states: states.to_vec() });
        self.medium.mark(shared.entries.len() as u64 - 1);
    }

    fn call<R>(
        &mut self,
        change: impl Fn(&mut State),
        call: impl FnOnce(&mut Self) -> indelible_store::error::Result<R>,
    ) -> Result<Option<R>, String> {
        let mut after = self.states.clone();
        after.iter_mut().for_each(change);
        let mut either = self.states.clone();
        either.extend(after.iter().filter(|state| !self.states.contains(state)).cloned());
        self.promise(&either);
        if self.fails && self.rng.u8(..12) == 0 {
            let kinds = [OpKind::WriteDurable, OpKind::Barrier, OpKind::Write, OpKind::Reserve];
            let faults = [Fault::Io, Fault::NoSpace, Fault::After, Fault::Short];
            let (kind, fault) = (kinds[self.rng.usize(..4)], faults[self.rng.usize(..4)]);
            self.medium.fail_at(kind, self.rng.u64(..6), fault);
        }
        let result = call(self);
        let mut shared = lock(self.shared);
        shared.calls += 1;
        shared.failures += u64::from(result.is_err());
        drop(shared);
        let out = match result {
            Ok(out) => {
                self.states = Vec::new();
                for state in after {
                    if !self.states.contains(&state) {
                        self.states.push(state);
                    }
                }
                Some(out)
            }
            Err(StoreError::NoRoom { .. } | StoreError::NoSpace | StoreError::NoLane { .. }) => None,
            Err(error) if !self.fails => return Err(format!("{error:?} without a failure")),
            Err(_) => {
                self.states = either;
                None
            }
        };
        self.promise(&self.states.clone());
        Ok(out)
    }

    fn step(&mut self) -> Verdict {
        let main = prefix(self.number) + "main";
        let extra = prefix(self.number) + "extra";
        if self.writer.as_ref().is_none_or(Writer::is_poisoned) {
            return self.attach(&main);
        }
        let len = self.shadow.len() as u64;
        match self.rng.u8(..20) {
            0..13 => {
                let mut edits: Vec<(u64, Vec<u8>)> = Vec::new();
                for _ in 0..self.rng.usize(1..4) {
                    let at = self.rng.u64(..len);
                    let most = [64, 300, 5000, 50_000][self.rng.usize(..4)].min(len - at);
                    edits.push((at, vec![self.rng.u8(1..); self.rng.u64(1..=most) as usize]));
                }
                for (at, bytes) in &edits {
                    self.shadow[*at as usize..*at as usize + bytes.len()].copy_from_slice(bytes);
                }
                let shadow = self.shadow.clone();
                let borrowed: Vec<(u64, &[u8])> = edits.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
                let change = |state: &mut State| drop(state.insert(main.clone(), shadow.clone()));
                let edits: Edits<'_> = &borrowed;
                let done = self.call(change, |actor| match &mut actor.writer {
                    Some(writer) => psync(writer, edits),
                    None => Ok(()),
                })?;
                // An attach shows the durable state.
                if done.is_none() {
                    self.forget();
                }
                Ok(())
            }
            13..15 => {
                self.call(|_| {}, |actor| actor.writer.as_ref().map_or(Ok(()), Writer::checkpoint)).map(drop)
            }
            15..17 => {
                let writer = self.writer.take();
                self.call(|_| {}, |_| writer.map_or(Ok(()), Writer::detach)).map(drop)
            }
            _ => {
                // The object's existence, if known, decides which of the two it is.
                let exists = self.states[0].contains_key(&extra);
                if self.states.iter().any(|state| state.contains_key(&extra) != exists) {
                    let found = self.store.find(&extra);
                    let exists = match found {
                        Ok(_) => true,
                        Err(StoreError::NotFound) => false,
                        Err(_) if self.fails => return Ok(()),
                        Err(error) => return Err(format!("{error:?} without a failure")),
                    };
                    self.states.retain(|state| state.contains_key(&extra) == exists);
                    self.promise(&self.states.clone());
                    return Ok(());
                }
                if exists {
                    let destroy = |actor: &mut Self| actor.store.destroy(&extra, Key::default());
                    self.call(|state| drop(state.remove(&extra)), destroy).map(drop)
                } else {
                    let how = CreateOptions { size: 6000, ..CreateOptions::default() };
                    let insert = |state: &mut State| drop(state.insert(extra.clone(), vec![0; 6000]));
                    self.call(insert, |actor| actor.store.create(&extra, &how)).map(drop)
                }
            }
        }
    }

    fn forget(&mut self) {
        if let Some(writer) = self.writer.take() {
            let mut shared = lock(self.shared);
            shared.joined = shared.joined.max(joined(&writer));
        }
        self.shadow.clear();
    }

    fn attach(&mut self, main: &str) -> Verdict {
        self.forget();
        let store = self.store.clone();
        let attached = self.call(
            |_| {},
            |_| {
                let writer = store.attach_writer(main, Key::default())?;
                let shown = contents(&store, writer.object())?;
                Ok((writer, shown))
            },
        )?;
        let Some((writer, shown)) = attached else { return Ok(()) };
        let found = State::from([(main.to_owned(), shown.clone())]);
        let wrong = difference(&found, &self.states);
        self.states.retain(|state| state.get(main) == Some(&shown));
        if self.states.is_empty() {
            return Err(format!("the attach shows bytes that no process stored: {wrong}"));
        }
        self.promise(&self.states.clone());
        (self.writer, self.shadow) = (Some(writer), shown);
        Ok(())
    }

    fn leave(&mut self) {
        self.forget();
    }
}

fn joined(writer: &Writer) -> u64 {
    let used = writer.lane_use();
    used.batches.saturating_sub(used.commits)
}
