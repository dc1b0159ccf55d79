//! A program on a pool, held against the model.

use super::model::{Answer, Attached, Model};
use super::{NAMES, PROCESSES, Program, Step};
use crate::pool::{Lending, Lent, Snapshot, contents, page, process, snapshot, take};
use crate::sim::{CrashImage, Fault, SimMedium};
use indelible_store::error::{Result, StoreError};
use indelible_store::format::PAGE;
use indelible_store::lane::Batch;
use indelible_store::store::{Changes, Primary, Reader, Store, Writer, psync_all};
use indelible_store::table::{CreateOptions, Key, Located};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a program was promised, moment by moment.
#[derive(Default)]
pub struct Promise {
    states: Vec<Snapshot>,
    /// After mark `m`: the states that may be found, by number.
    windows: Vec<Vec<usize>>,
    /// Steps that called the store.
    pub steps: u64,
    /// Processes that died.
    pub deaths: u64,
    /// Calls that were refused, as the model had said.
    pub refused: u64,
}

impl Promise {
    /// The states that may be found on an image.
    #[must_use]
    pub fn allowed(&self, image: &CrashImage) -> Vec<&Snapshot> {
        let window = image.last_mark().unwrap_or(0) as usize;
        self.windows[window].iter().map(|state| &self.states[*state]).collect()
    }
}

/// A program that went wrong without any power cut, and where.
#[derive(Debug)]
pub struct Wrong(pub String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process: its handle on the medium, and what it has attached.
struct Process {
    medium: Arc<SimMedium>,
    store: Arc<Store>,
    writers: BTreeMap<usize, Writer>,
    readers: BTreeMap<usize, Reader>,
}

impl Process {
    fn begin(medium: &SimMedium, pid: u32) -> Result<Process> {
        let medium = Arc::new(medium.handle());
        let store = Store::open(medium.clone(), process(pid))?;
        Ok(Process { medium, store, writers: BTreeMap::new(), readers: BTreeMap::new() })
    }
}

/// Bytes that an object is to hold, as its process sees them.
struct Shadow<'a> {
    bytes: &'a [u8],
    lent: Lent<'a>,
}

impl Changes for Shadow<'_> {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        let mut end = 0;
        for (number, bytes) in (0..).zip(self.bytes.chunks(PAGE as usize)) {
            let old = page(primary, number)?;
            let mut new = old;
            new[..bytes.len()].copy_from_slice(bytes);
            end = end.max(take(primary, batch, self.lent, number, &old, &new));
        }
        Ok(end)
    }
}

/// A program under way.
struct Run<'a> {
    medium: &'a SimMedium,
    model: Model,
    processes: Vec<Process>,
    promise: Promise,
    pids: u32,
}

impl Program {
    /// Runs the program on a pool whose objects are all detached, and marks each completed step.
    ///
    /// # Errors
    /// A call that does not answer as the model does, or shows other bytes.
    pub fn run(&self, medium: &SimMedium) -> std::result::Result<Promise, Wrong> {
        let wrong = |error: StoreError| Wrong(format!("before the first step: {error}"));
        let mut run = Run {
            medium,
            model: Model::default(),
            processes: Vec::new(),
            promise: Promise::default(),
            pids: 100,
        };
        for pid in 0..PROCESSES as u32 {
            run.processes.push(Process::begin(medium, 10 + pid).map_err(wrong)?);
        }
        run.model.durable = snapshot(&run.processes[0].store).map_err(wrong)?;
        run.promise.states.push(run.model.durable.clone());
        run.promise.windows.push(vec![0]);
        for (nth, (process, step)) in self.0.iter().enumerate() {
            run.step(*process, step)
                .map_err(|what| Wrong(format!("step {nth}, process {process}: {step:?}: {what}")))?;
        }
        Ok(run.promise)
    }
}

impl Run<'_> {
    fn step(&mut self, process: usize, step: &Step) -> std::result::Result<(), String> {
        let mut after = self.model.clone();
        let answer = after.step(process, step);
        if answer == Answer::Nothing {
            return Ok(());
        }
        self.promise.steps += 1;
        // In flight from now on.
        self.promise.states.push(after.durable.clone());
        let number = self.promise.states.len() - 1;
        let window = self.promise.windows.len() - 1;
        self.promise.windows[window].push(number);
        if let Step::DieIn { step, kind, nth, late } = step {
            self.medium.fail_at(*kind, *nth, if *late { Fault::KillLate } else { Fault::Kill });
            let result = self.call(process, step, &mut after);
            self.medium.clear_faults();
            let killed = |error: &StoreError| error.to_string().contains("killed");
            // A death in a call that reports nothing shows only afterwards.
            let dead = result.as_ref().is_err_and(killed)
                || self.processes[process].store.device().verify().is_err();
            if dead {
                return self.aftermath(process, step, after.durable, number);
            }
            return self.settle(result, answer, after, number);
        }
        let result = self.call(process, step, &mut after);
        self.settle(result, answer, after, number)
    }

    /// Compares the answer with the model's, and takes the model's state.
    fn settle(
        &mut self,
        result: Result<Option<Located>>,
        answer: Answer,
        mut after: Model,
        number: usize,
    ) -> std::result::Result<(), String> {
        match (result, answer) {
            (Ok(made), Answer::Done) => {
                if let Some(object) = made {
                    let entry = &object.entry;
                    if let Some(found) = after.durable.get_mut(&entry.name()) {
                        (found.0, found.1) = (entry.id, entry.address.get());
                    }
                }
                self.model = after;
            }
            (Err(StoreError::NotFound), Answer::NotFound)
            | (Err(StoreError::Exists), Answer::Exists)
            | (Err(StoreError::Held { .. }), Answer::Held) => self.promise.refused += 1,
            // How much fits is the store's business; that nothing happened is not.
            (
                Err(StoreError::NoRoom { .. } | StoreError::NoAddresses { .. } | StoreError::NoLane { .. }),
                Answer::Done,
            ) => self.promise.refused += 1,
            (Ok(_), _) => return Err(format!("succeeds, where the model says {answer:?}")),
            (Err(error), _) => return Err(format!("{error:?}, where the model says {answer:?}")),
        }
        self.promised(number);
        Ok(())
    }

    /// From here on the model's state, which is that of `number` or an earlier one, is what is promised.
    fn promised(&mut self, number: usize) {
        self.promise.states[number] = self.model.durable.clone();
        self.promise.windows.push(vec![number]);
        self.medium.mark(self.promise.windows.len() as u64 - 1);
    }

    /// The process died in a step that leads to `after`: somebody recovers, and sees one or the other.
    fn aftermath(
        &mut self,
        process: usize,
        step: &Step,
        after: Snapshot,
        number: usize,
    ) -> std::result::Result<(), String> {
        let text = |error: StoreError| format!("after the death of its process: {error}");
        let (before, mut concerned) = (self.model.durable.clone(), step.objects());
        concerned.extend(self.model.attached.keys().filter(|key| key.0 == process).map(|key| key.1));
        self.replace(process).map_err(text)?;
        let store = self.processes[process].store.clone();
        for object in &concerned {
            match store.attach_reader(NAMES[*object], Key::default()) {
                Ok(reader) => reader.detach().map_err(text)?,
                Err(StoreError::NotFound) => {}
                // Another process has it: the step was refused, or concerned others.
                Err(StoreError::Held { .. }) if self.is_attached(*object) => {}
                Err(error) => return Err(text(error)),
            }
        }
        // What another process is loading is in place and not published.
        concerned.retain(|object| !self.is_attached(*object));
        let names: Vec<&str> = concerned.iter().map(|object| NAMES[*object]).collect();
        let mut found = if agree(&store, &before, &names).map_err(text)? {
            before
        } else if agree(&store, &after, &names).map_err(text)? {
            after
        } else {
            return Err("is half done after the death of its process".into());
        };
        for (name, (id, address, _)) in &mut found {
            let entry = store.find(name).map_err(text)?.entry;
            (*id, *address) = (entry.id, entry.address.get());
        }
        if found.len() == self.promise.states[number].len() {
            // An object that was being created has an ID now.
            for (name, (id, address, _)) in &mut self.promise.states[number] {
                if let Some(made) = found.get(name) {
                    (*id, *address) = (made.0, made.1);
                }
            }
        }
        self.promise.states.push(found.clone());
        self.model.durable = found;
        self.promised(self.promise.states.len() - 1);
        Ok(())
    }

    /// Whether any process has the object.
    fn is_attached(&self, object: usize) -> bool {
        self.model.attached.keys().any(|key| key.1 == object)
    }

    /// The process is gone; a new one takes its place.
    fn replace(&mut self, process: usize) -> Result<()> {
        self.processes[process].medium.kill();
        self.pids += 1;
        self.processes[process] = Process::begin(self.medium, self.pids)?;
        self.model.die(process);
        self.promise.deaths += 1;
        Ok(())
    }

    fn call(&mut self, process: usize, step: &Step, after: &mut Model) -> Result<Option<Located>> {
        let key = Key::default();
        if *step == Step::Die {
            return self.replace(process).map(|()| None);
        }
        let Process { store, writers, readers, .. } = &mut self.processes[process];
        let damaged = |what: &'static str| StoreError::BadName { why: what };
        match *step {
            Step::Create { object, size, sparse } => {
                let how = CreateOptions { size: size.into(), sparse, ..CreateOptions::default() };
                return store.create(NAMES[object], &how).map(Some);
            }
            Step::Destroy { object } => store.destroy(NAMES[object], key)?,
            Step::Rename { object, to } => store.rename(NAMES[object], NAMES[to], key)?,
            Step::Resize { object, size } => drop(store.resize(NAMES[object], key, size.into())?),
            Step::Attach { object } => {
                let writer = store.attach_writer(NAMES[object], key)?;
                let shown = contents(store, writer.object())?;
                writers.insert(object, writer);
                if after.durable.get(NAMES[object]).is_some_and(|(_, _, bytes)| *bytes != shown) {
                    return Err(damaged("the attach shows other bytes than were psynced"));
                }
            }
            Step::Read { object } => {
                let reader = store.attach_reader(NAMES[object], key)?;
                let shown = contents(store, reader.object())?;
                readers.insert(object, reader);
                if after.durable.get(NAMES[object]).is_some_and(|(_, _, bytes)| *bytes != shown) {
                    return Err(damaged("the reader is shown other bytes than were psynced"));
                }
            }
            Step::Detach { object } => match (writers.remove(&object), readers.remove(&object)) {
                (Some(writer), _) => writer.detach()?,
                (_, Some(reader)) => reader.detach()?,
                (None, None) => {}
            },
            Step::Store { .. } | Step::Die | Step::DieIn { .. } => {}
            Step::Load { object, len, value } => {
                let Some(writer) = writers.get_mut(&object) else { return Ok(None) };
                let Some(Attached::Writing(shadow)) = after.attached.get_mut(&(process, object)) else {
                    return Ok(None);
                };
                let from = writer.published().min(shadow.len() as u64);
                let to = (from + u64::from(len)).min(shadow.len() as u64);
                if from < to {
                    let bytes = vec![value; (to - from) as usize];
                    writer.begin_direct(to)?;
                    writer.write_direct(from, &bytes)?;
                    writer.end_direct()?;
                    shadow[from as usize..to as usize].copy_from_slice(&bytes);
                }
            }
            Step::Psync { ref objects } => {
                let own = after.psynced(process, objects);
                let lending = Lending::default();
                let mut parts: Vec<(&mut Writer, Shadow<'_>)> = Vec::new();
                for (object, writer) in writers.iter_mut().filter(|(object, _)| own.contains(object)) {
                    if let Some(Attached::Writing(bytes)) = after.attached.get(&(process, *object)) {
                        let lent = Lent::new(&lending, writer);
                        parts.push((writer, Shadow { bytes, lent }));
                    }
                }
                let mut joined: Vec<(&mut Writer, &mut dyn Changes)> = parts
                    .iter_mut()
                    .map(|(writer, shadow)| (&mut **writer, shadow as &mut dyn Changes))
                    .collect();
                psync_all(&mut joined, Some(&lending))?;
            }
            Step::Grow { object, size } => {
                if let Some(writer) = writers.get_mut(&object) {
                    writer.grow(size.into())?;
                }
            }
            Step::Checkpoint { object } => {
                if let Some(writer) = writers.get(&object) {
                    writer.checkpoint()?;
                }
            }
        }
        Ok(None)
    }
}

/// Whether each object of `names` holds in the pool what it does in `state`.
fn agree(store: &Arc<Store>, state: &Snapshot, names: &[&str]) -> Result<bool> {
    for name in names {
        let same = match (store.find(name), state.get(*name)) {
            (Err(StoreError::NotFound), None) => true,
            (Ok(object), Some((_, _, bytes))) => contents(store, &object)? == *bytes,
            (Ok(_), None) | (Err(StoreError::NotFound), Some(_)) => false,
            (Err(error), _) => return Err(error),
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
