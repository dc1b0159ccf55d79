use super::hold;
use super::left::Left;
use super::model::{Answer, Model};
use super::process::{Process, Seen};
use super::{NAMES, PROCESSES, Program, Step};
use crate::pool::{Snapshot, snapshot};
use crate::sim::{CrashImage, Fault, SimMedium};
use indelible_store::error::{SealError, StoreError};

#[derive(Default)]
pub struct Promise {
    states: Vec<Snapshot>,
    windows: Vec<Vec<usize>>,
    pub steps: u64,
    pub deaths: u64,
    /// Calls refused as the model said.
    pub refused: u64,
    pub failures: u64,
    pub unknown: u64,
}

impl Promise {
    #[must_use]
    pub fn allowed(&self, image: &CrashImage) -> Vec<&Snapshot> {
        let window = image.last_mark().unwrap_or(0) as usize;
        self.windows[window].iter().map(|state| &self.states[*state]).collect()
    }
}

#[derive(Debug)]
pub struct Wrong(pub String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

type Verdict = Result<(), String>;

struct Future {
    before: Model,
    answer: Answer,
    after: Model,
}

struct Run<'a> {
    medium: &'a SimMedium,
    worlds: Vec<Model>,
    processes: Vec<Process>,
    promise: Promise,
    left: Left,
    pids: u32,
}

impl Program {
    /// Runs the program on a pool without attached objects; marks each completed step.
    pub fn run(&self, medium: &SimMedium) -> Result<Promise, Wrong> {
        let wrong = |error: StoreError| Wrong(format!("before the first step: {error}"));
        medium.evict_by_itself(true);
        let mut run = Run {
            medium,
            worlds: vec![Model::default()],
            processes: Vec::new(),
            promise: Promise::default(),
            left: Left::default(),
            pids: 100,
        };
        for pid in 0..PROCESSES as u32 {
            run.processes.push(Process::begin(medium, 10 + pid).map_err(wrong)?);
        }
        run.worlds[0].durable = snapshot(&run.processes[0].store).map_err(wrong)?;
        for (object, name) in NAMES.iter().enumerate() {
            if run.processes[0].store.find(name).is_ok_and(|found| found.is_sealed()) {
                run.worlds[0].sealed.insert(object);
            }
        }
        run.promise.states.push(run.worlds[0].durable.clone());
        run.promise.windows.push(vec![0]);
        for (nth, (process, step)) in self.0.iter().enumerate() {
            run.step(*process, step)
                .map_err(|what| Wrong(format!("step {nth}, process {process}: {step:?}: {what}")))?;
        }
        Ok(run.promise)
    }
}

impl Run<'_> {
    fn step(&mut self, process: usize, step: &Step) -> Verdict {
        if let Step::Repair { .. } = step.call() {
            self.replace(process)?;
        }
        let futures: Vec<Future> = self.worlds.iter().map(|world| future(world, process, step)).collect();
        let is = |answer| move |future: &Future| future.answer == answer;
        if futures.iter().all(is(Answer::Nothing)) || futures.iter().any(is(Answer::Ambiguous)) {
            return Ok(());
        }
        self.promise.steps += 1;
        for future in futures.iter().filter(|future| future.answer == Answer::Done) {
            self.may_be_found(&future.after.durable);
        }
        match *step {
            Step::Die => self.replace(process)?,
            Step::WritebackFails { no_space } => self.medium.fail_writeback(no_space),
            _ => self.call(process, step, futures)?,
        }
        self.promised();
        Ok(())
    }

    fn call(&mut self, process: usize, step: &Step, futures: Vec<Future>) -> Verdict {
        let met = self.medium.faults_met();
        match *step {
            Step::DieIn { kind, nth, late, .. } => {
                self.medium.fail_at(kind, nth, if late { Fault::KillLate } else { Fault::Kill });
            }
            Step::FailIn { kind, nth, fault, lasts: false, .. } => self.medium.fail_at(kind, nth, fault),
            Step::FailIn { kind, nth, fault, lasts: true, .. } => self.medium.fail_from(kind, nth, fault),
            _ => {}
        }
        let refused_detach = matches!(step.call(), Step::Detach { .. }) && self.is_any_held();
        let caller = &mut self.processes[process];
        let due = caller.medium.error_due();
        let mut seen = Seen::default();
        let result = caller.call(process, step.call(), &self.worlds[0], &mut seen);
        let dead = caller.medium.is_dead();
        self.medium.clear_faults();
        let failed = self.medium.faults_met() > met && !dead;
        self.promise.failures += u64::from(failed);
        if dead {
            self.worlds = wholly_or_not(futures);
            return self.replace(process);
        }
        let worlds = match result {
            Ok(()) => {
                self.left.done(step.call());
                self.held(process, step.call(), &seen)?;
                agreeing(futures, &seen)?
            }
            Err(error) => self.refused(process, step.call(), futures, &error, failed || due)?,
        };
        self.worlds = worlds;
        for world in &mut self.worlds {
            seen.stored(world, process);
        }
        self.poison(process, failed || due || refused_detach)?;
        self.dedup();
        self.left.settle(&self.worlds);
        Ok(())
    }

    fn is_any_held(&self) -> bool {
        self.processes.iter().any(|process| process.hold.is_some())
    }

    fn held(&self, process: usize, call: &Step, seen: &Seen) -> Verdict {
        match *call {
            Step::Hold { object } => {
                let hold = self.processes[process].hold.as_ref();
                hold::judge(&self.worlds, object, hold)
            }
            Step::Repair { .. } if seen.repair.is_some() => {
                Err(format!("a repair of what is whole: {:?}", seen.repair))
            }
            _ if seen.moved => Err("it changed while it was held still, or followed".into()),
            _ => Ok(()),
        }
    }

    fn refused(
        &mut self,
        process: usize,
        call: &Step,
        futures: Vec<Future>,
        error: &StoreError,
        may_fail: bool,
    ) -> Result<Vec<Model>, String> {
        use StoreError as E;
        let answers: Vec<Answer> = futures.iter().map(|future| future.answer).collect();
        let contrary = || format!("{error:?}, where the model says {answers:?}");
        let poisoned: Vec<usize> = self.worlds[0].poisoned().collect();
        let said = match error {
            E::NotFound => Some(Answer::NotFound),
            E::Exists => Some(Answer::Exists),
            E::Held { .. } => Some(Answer::Held),
            E::ObjectReadOnly => Some(Answer::ReadOnly),
            E::Poisoned | E::BadSize { .. } => Some(Answer::Poisoned),
            E::NoRoom { .. } | E::NoAddresses { .. } | E::NoLane { .. } => Some(Answer::Done),
            _ => None,
        };
        // The store decides which snapshots have which addresses.
        let unfit = matches!(error, E::NotItsSnapshot { .. })
            || matches!((error, call), (E::NoAddresses { .. }, Step::Rollback { .. }));
        let unbuilt = matches!(error, E::Seal(SealError::Refused { .. })) && self.may_refuse(call);
        let says = |answer| match (unfit, unbuilt) {
            (true, _) => matches!(answer, Answer::Nothing | Answer::Held | Answer::Done),
            (_, true) => answer != Answer::NotFound,
            _ => Some(answer) == said,
        };
        if answers.iter().any(|answer| says(*answer)) {
            self.promise.refused += 1;
            let left = futures.into_iter().filter(|future| says(future.answer));
            return Ok(left.map(|future| without_detached(future.before, process, call)).collect());
        }
        let copies =
            if let Step::Copy { object, .. } | Step::Merge { object } | Step::Follow { object } = *call {
                Some(object)
            } else {
                None
            };
        let beside = match error {
            E::Held { .. } if matches!(call, Step::Repair { .. }) => true,
            E::Held { .. } if self.left.may_hold(process, call) => true,
            E::Held { .. } => return Err(contrary()),
            E::Poisoned => poisoned.contains(&process),
            E::HeldStill { .. } => self.is_any_held(),
            // An unpublished direct write.
            E::Changing { .. } => {
                copies.is_some_and(|object| self.worlds.iter().any(|world| world.writing(object).is_some()))
            }
            _ => false,
        };
        self.left.failed(process, call);
        let detached = matches!(call, Step::Detach { .. }) && matches!(error, E::Poisoned);
        if !(may_fail || beside || detached) {
            return Err(contrary());
        }
        let nothing = matches!(
            error,
            E::Medium(_) | E::NoSpace | E::NoRoom { .. } | E::HeldStill { .. } | E::Changing { .. }
        ) || beside && !may_fail;
        let worlds = if nothing || self.is_certain(process, call) {
            futures.into_iter().map(|future| future.before).collect()
        } else {
            self.promise.unknown += 1;
            wholly_or_not(futures)
        };
        let own = call.objects();
        if nothing && own.iter().any(|object| self.newly_poisoned(process, *object)) {
            return Err(format!("{error:?}, and the object is poisoned"));
        }
        Ok(worlds.into_iter().map(|world| without_detached(world, process, call)).collect())
    }

    fn may_refuse(&self, call: &Step) -> bool {
        match *call {
            Step::Hold { object } => self.worlds.iter().any(|world| world.sealed.contains(&object)),
            _ => false,
        }
    }

    /// Whether a failed call did not happen, as it would have poisoned its objects.
    fn is_certain(&self, process: usize, call: &Step) -> bool {
        matches!(
            call,
            Step::Repair { .. }
                | Step::Psync { .. }
                | Step::Grow { .. }
                | Step::Load { .. }
                | Step::Checkpoint { .. }
        ) && !call.objects().iter().any(|object| self.processes[process].is_poisoned(*object))
    }

    fn newly_poisoned(&self, process: usize, object: usize) -> bool {
        self.processes[process].is_poisoned(object) && !self.worlds[0].is_poisoned(process, object)
    }

    fn poison(&mut self, caller: usize, may_be: bool) -> Verdict {
        for process in 0..PROCESSES {
            for (object, name) in NAMES.iter().enumerate() {
                if !self.newly_poisoned(process, object) {
                    continue;
                }
                if process != caller || !may_be {
                    return Err(format!("{name:?} of process {process} is poisoned without a failure"));
                }
                self.worlds.iter_mut().for_each(|world| world.poison(process, object));
            }
        }
        Ok(())
    }

    fn dedup(&mut self) {
        let mut left: Vec<Model> = Vec::new();
        for world in self.worlds.drain(..) {
            if !left.contains(&world) {
                left.push(world);
            }
        }
        self.worlds = left;
    }

    fn may_be_found(&mut self, state: &Snapshot) {
        self.promise.states.push(state.clone());
        let number = self.promise.states.len() - 1;
        if let Some(window) = self.promise.windows.last_mut() {
            window.push(number);
        }
    }

    fn promised(&mut self) {
        self.promise.windows.push(Vec::new());
        for world in 0..self.worlds.len() {
            let state = self.worlds[world].durable.clone();
            self.may_be_found(&state);
        }
        self.medium.mark(self.promise.windows.len() as u64 - 1);
    }

    fn replace(&mut self, process: usize) -> Verdict {
        self.processes[process].medium.kill();
        self.left.died(process);
        self.pids += 1;
        self.processes[process] =
            Process::begin(self.medium, self.pids).map_err(|error| format!("the next process: {error}"))?;
        self.worlds.iter_mut().for_each(|world| world.die(process));
        self.dedup();
        self.promise.deaths += 1;
        Ok(())
    }
}

fn future(world: &Model, process: usize, step: &Step) -> Future {
    let mut after = world.clone();
    let answer = after.step(process, step);
    Future { before: world.clone(), answer, after }
}

fn agreeing(futures: Vec<Future>, seen: &Seen) -> Result<Vec<Model>, String> {
    let answers: Vec<Answer> = futures.iter().map(|future| future.answer).collect();
    let mut done: Vec<Model> = futures
        .into_iter()
        .filter(|future| future.answer == Answer::Done)
        .map(|future| future.after)
        .collect();
    if done.is_empty() {
        return Err(format!("succeeds, where the model says {answers:?}"));
    }
    let expected = seen.difference(&done[0]);
    done.retain(|world| seen.difference(world).is_none());
    if let (true, Some(what)) = (done.is_empty(), expected) {
        return Err(what);
    }
    done.iter_mut().for_each(|world| seen.located(world));
    Ok(done)
}

fn wholly_or_not(futures: Vec<Future>) -> Vec<Model> {
    let mut worlds = Vec::new();
    for Future { before, answer, mut after } in futures {
        after.attached.clone_from(&before.attached);
        worlds.push(before);
        if answer == Answer::Done {
            worlds.push(after);
        }
    }
    worlds
}

/// A failed detach detaches, too.
fn without_detached(mut world: Model, process: usize, call: &Step) -> Model {
    if let Step::Detach { object } = *call {
        world.attached.remove(&(process, object));
    }
    world
}

impl Step {
    fn objects(&self) -> Vec<usize> {
        match *self {
            Step::Grow { object, .. } | Step::Load { object, .. } | Step::Checkpoint { object } => {
                vec![object]
            }
            Step::Psync { ref objects } => objects.clone(),
            _ => vec![],
        }
    }
}
