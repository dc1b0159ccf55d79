//! Rules D1 to D14: two processes have two objects on demand, `a` and `b`, of one pool. They
//! attach, commit, publish epochs, leave, and die at any step; each recovers them, and sweeps the
//! folder of memory. The pool's file is copied. The power is cut.
//!
//! An object's content is the number of the last commit that changed it. Changes of the pool are
//! atomic and durable, as the model of lanes shows.

mod steps;

use super::{NO_LOSS, fails, holds};
use stateright::{Model, Property};

const OBJECTS: usize = 2;
const ORIGINAL: usize = 0;
const COPY: usize = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// Rule D1: the owner of memory does not lock it.
    Unlocked,
    /// Rule D2: an entry states memory before it exists.
    BoundFirst,
    /// Rule D2: a leaving object's memory goes before the mark in the entry.
    RemovedFirst,
    /// Rule D3: a log never becomes valid.
    LogUnvalidated,
    /// Rule D3: a log ends before memory has its lines.
    LogClearedEarly,
    /// Rule D3: a recovery ignores logs.
    LogForgotten,
    /// Rule D4: an epoch takes lines while transactions run.
    EpochUngated,
    /// Rule D4: an epoch is a commit for each object.
    EpochEach,
    /// Rule D5: a wait for durability does not wait.
    SyncNotAwaited,
    /// Rule D6: an object leaves the space with unpublished commits.
    LeftUnpublished,
    /// Rule D6: an object leaves with unpublished commits, and its memory goes.
    MemoryGivenUp,
    /// Rule D7: a space goes on after an epoch failed.
    FailedForgotten,
    /// Rule D7: lines of an epoch without room are not marked again.
    MarksLost,
    /// Rule D8: memory of a living process is recovered.
    RecoveredUnlocked,
    /// Rule D9: a recovery publishes object by object.
    RecoveredEach,
    /// Rule D9: unfilled memory counts.
    UnfilledCounts,
    /// Rule D10: memory is removed while entries name it.
    RemovedEarly,
    /// Rule D11: an object is attached without a recovery.
    MemoryForgotten,
    /// Rule D12: a sweep judges before it locks.
    JudgedUnlocked,
    /// Rule D13: a sweep takes memory for that of any file with the pool's ID.
    SweptByCopy,
    /// Rule D13: so does a recovery.
    RecoveredByCopy,
    /// Rule D14: a number of an earlier boot counts.
    BootIgnored,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) processes: usize,
    /// Processes that attach objects; the others recover and sweep.
    pub(crate) writers: usize,
    pub(crate) commits: usize,
    pub(crate) groups: u8,
    pub(crate) deaths: u8,
    pub(crate) cuts: u8,
    pub(crate) copies: u8,
    /// Epochs and leaves that fail.
    pub(crate) failures: u8,
    pub(crate) sweeps: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) scope: Scope,
    pub(crate) broken: Broken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pool {
    values: [u8; OBJECTS],
    stated: [Option<(u8, u8)>; OBJECTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Of {
    Head,
    Object(usize),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Part {
    group: u8,
    of: Of,
    owner: Option<usize>,
    filled: bool,
    value: u8,
    log: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum View {
    Out,
    In {
        marked: bool,
    },
    /// The program has left the object, and the space keeps it.
    Leaving {
        marked: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Doing {
    Nothing,
    /// Attaching: memory exists, unless the entry comes first.
    Made(usize),
    Bound(usize),
    /// Leaving: the mark in the entry goes, unless memory goes first.
    Forgotten(usize),
    Recovering {
        pool: usize,
        group: u8,
        members: [bool; OBJECTS],
        next: u8,
    },
    Judged {
        pool: usize,
        group: u8,
        of: Of,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    group: Option<u8>,
    views: [View; OBJECTS],
    doing: Doing,
    commit: Option<(u8, u8)>,
    epoch: Option<([Option<u8>; OBJECTS], u8)>,
    last: u8,
    durable: u8,
    failed: bool,
}

const GONE: Process = Process {
    group: None,
    views: [View::Out; OBJECTS],
    doing: Doing::Nothing,
    commit: None,
    epoch: None,
    last: 0,
    durable: 0,
    failed: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Commit {
    group: u8,
    changed: [bool; OBJECTS],
    acknowledged: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pools: Vec<Pool>,
    parts: Vec<Part>,
    processes: Vec<Process>,
    commits: Vec<Commit>,
    groups: u8,
    boot: u8,
    deaths: u8,
    failures: u8,
    sweeps: u8,
    recovered: bool,
    swept: bool,
    kept: bool,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Attach(usize, usize),
    Commit(usize),
    Store(usize),
    TakeEpoch(usize),
    PublishEpoch(usize),
    /// There is no room for the epoch.
    NoRoom(usize),
    FailEpoch(usize),
    Sync(usize),
    Leave(usize, usize),
    /// The process is in a transaction on another object.
    LeaveInside(usize, usize),
    End(usize),
    Continue(usize),
    Recover(usize, usize, u8),
    Sweep(usize, usize, u8, Of),
    Copy,
    Die(usize),
    CutPower,
}

impl State {
    fn new(scope: &Scope) -> State {
        State {
            pools: vec![Pool { values: [0; OBJECTS], stated: [None; OBJECTS] }],
            parts: Vec::new(),
            processes: vec![GONE; scope.processes],
            commits: Vec::new(),
            groups: 0,
            boot: 0,
            deaths: 0,
            failures: 0,
            sweeps: 0,
            recovered: false,
            swept: false,
            kept: false,
            wrong: None,
        }
    }

    fn part(&mut self, group: u8, of: Of) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.group == group && part.of == of)
    }

    fn make(&mut self, group: u8, of: Of, owner: usize, broken: Broken) {
        let owner = Some(owner).filter(|_| broken != Broken::Unlocked);
        self.parts.push(Part { group, of, owner, filled: false, value: 0, log: None });
        self.parts.sort_unstable();
    }

    fn remove(&mut self, group: u8, of: Of) {
        self.parts.retain(|part| (part.group, part.of) != (group, of));
    }

    fn stated(&self, pool: usize, object: usize, broken: Broken) -> Option<u8> {
        let (group, boot) = self.pools.get(pool)?.stated[object]?;
        (boot == self.boot || broken == Broken::BootIgnored).then_some(group)
    }

    fn is_stated(&self, pool: usize, group: u8, broken: Broken) -> bool {
        (0..OBJECTS).any(|object| self.stated(pool, object, broken) == Some(group))
    }

    fn is_held(&self, object: usize) -> bool {
        self.processes.iter().any(|process| {
            process.views[object] != View::Out
                || match process.doing {
                    Doing::Made(doing) | Doing::Bound(doing) | Doing::Forgotten(doing) => doing == object,
                    Doing::Recovering { pool: ORIGINAL, members, .. } => members[object],
                    _ => false,
                }
        })
    }

    fn newest(&self, object: usize) -> u8 {
        self.commits.iter().rposition(|commit| commit.changed[object]).map_or(0, |nth| nth as u8 + 1)
    }

    fn look(&mut self, broken: Broken) {
        for object in 0..OBJECTS {
            match self.stated(ORIGINAL, object, broken) {
                _ if self.is_held(object) => {}
                Some(group) => {
                    let there =
                        [Of::Head, Of::Object(object)].map(|of| self.part(group, of).is_some()) == [true; 2];
                    if !there {
                        self.wrong = Some("memory that an entry states is gone");
                    }
                }
                None if self.pools[ORIGINAL].values[object] != self.newest(object) => {
                    self.wrong = Some("a commit is lost, and there was no power cut");
                }
                None => {}
            }
        }
    }

    fn cut_power(&mut self) {
        let values = self.pools[ORIGINAL].values;
        let mut before = Vec::<(Commit, bool)>::new();
        for (nth, commit) in self.commits.iter_mut().enumerate() {
            let has: Vec<_> = (0..OBJECTS).filter(|object| commit.changed[*object]).collect();
            let has: Vec<_> = has.into_iter().map(|object| values[object] > nth as u8).collect();
            let there = has.iter().all(|has| *has);
            if has.iter().any(|has| *has != there) {
                self.wrong = Some("a transaction is torn");
            } else if !there && commit.acknowledged {
                self.wrong = Some("a commit is lost that a thread was told is durable");
            } else if there && before.iter().any(|(other, there)| other.group == commit.group && !there) {
                self.wrong = Some("an epoch is no prefix");
            }
            before.push((*commit, there));
            if !there {
                commit.changed = [false; OBJECTS];
            }
        }
        self.boot += 1;
        self.parts.clear();
        self.processes.iter_mut().for_each(|process| *process = GONE);
    }

    fn die(&mut self, process: usize) {
        self.processes[process] = GONE;
        for part in self.parts.iter_mut().filter(|part| part.owner == Some(process)) {
            part.owner = None;
        }
    }
}

impl Process {
    fn is_marked(&self, object: usize) -> bool {
        matches!(self.views[object], View::In { marked: true } | View::Leaving { marked: true })
    }

    fn mark(&mut self, object: usize, to: bool) {
        match &mut self.views[object] {
            View::In { marked } | View::Leaving { marked } => *marked = to,
            View::Out => {}
        }
    }

    fn has_some(&self) -> bool {
        self.views.iter().any(|view| *view != View::Out)
    }
}

impl Model for Demand {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.scope)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.wrong.is_some() {
            return;
        }
        let (scope, broken) = (&self.scope, self.broken);
        for (nth, process) in state.processes.iter().enumerate() {
            let may_fail = state.failures < scope.failures;
            match process.doing {
                Doing::Nothing => self.begin(state, nth, actions),
                _ => actions.push(Action::Continue(nth)),
            }
            let used = process.views.iter().any(|view| matches!(view, View::In { .. }));
            if process.commit.is_some() {
                actions.push(Action::Store(nth));
            } else if used && !process.failed && state.commits.len() < scope.commits {
                actions.push(Action::Commit(nth));
            }
            let gated = process.commit.is_some() && broken != Broken::EpochUngated;
            if process.epoch.is_some() {
                actions.push(Action::PublishEpoch(nth));
                if may_fail {
                    actions.extend([Action::NoRoom(nth), Action::FailEpoch(nth)]);
                }
            } else if (0..OBJECTS).any(|object| process.is_marked(object)) && !process.failed && !gated {
                actions.push(Action::TakeEpoch(nth));
            }
            let told = process.durable >= process.last || broken == Broken::SyncNotAwaited;
            let news = state.commits.iter().any(|one| Some(one.group) == process.group && !one.acknowledged);
            if process.has_some() && process.commit.is_none() && told && news {
                actions.push(Action::Sync(nth));
            }
            let is_something = *process != GONE;
            if is_something && state.deaths < scope.deaths {
                actions.push(Action::Die(nth));
            }
        }
        if state.pools.len() <= usize::from(scope.copies) {
            actions.push(Action::Copy);
        }
        if state.boot < scope.cuts && !state.commits.is_empty() {
            actions.push(Action::CutPower);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let (mut state, broken) = (last.clone(), self.broken);
        match action {
            Action::Attach(nth, object) => {
                if state.processes[nth].group.is_none() {
                    state.groups += 1;
                    state.processes[nth].group = Some(state.groups);
                }
                match broken {
                    Broken::BoundFirst => {
                        let stated = state.processes[nth].group.map(|group| (group, state.boot));
                        state.pools[ORIGINAL].stated[object] = stated;
                    }
                    _ => state.make_parts(nth, object, broken),
                }
                state.processes[nth].doing = Doing::Made(object);
            }
            Action::Commit(nth) => state.commit(nth, broken),
            Action::Store(nth) => state.store(nth),
            Action::TakeEpoch(nth) => {
                let group = state.processes[nth].group?;
                let mut lines = [None; OBJECTS];
                for (object, line) in lines.iter_mut().enumerate() {
                    if state.processes[nth].is_marked(object) {
                        *line = state.part(group, Of::Object(object)).map(|part| part.value);
                        state.processes[nth].mark(object, false);
                    }
                }
                let own = &mut state.processes[nth];
                own.epoch = Some((lines, own.last));
            }
            Action::PublishEpoch(nth) => {
                let (mut lines, last) = state.processes[nth].epoch.take()?;
                let values = &mut state.pools[ORIGINAL].values;
                for object in 0..OBJECTS {
                    let Some(new) = lines[object].take() else { continue };
                    values[object] = new;
                    if broken == Broken::EpochEach && lines.iter().any(Option::is_some) {
                        state.processes[nth].epoch = Some((lines, last));
                        return Some(state);
                    }
                }
                state.processes[nth].durable = last;
            }
            Action::NoRoom(nth) => {
                state.failures += 1;
                let (lines, _) = state.processes[nth].epoch.take()?;
                if broken != Broken::MarksLost {
                    let own = &mut state.processes[nth];
                    (0..OBJECTS).filter(|o| lines[*o].is_some()).for_each(|object| own.mark(object, true));
                } else {
                    state.processes[nth].durable = state.processes[nth].last;
                }
            }
            Action::FailEpoch(nth) => {
                state.failures += 1;
                state.processes[nth].epoch.take()?;
                match broken {
                    Broken::FailedForgotten => state.processes[nth].durable = state.processes[nth].last,
                    _ => state.processes[nth].failed = true,
                }
            }
            Action::Sync(nth) => {
                let group = state.processes[nth].group?;
                for commit in state.commits.iter_mut().filter(|commit| commit.group == group) {
                    commit.acknowledged = true;
                }
            }
            Action::Leave(nth, object) => state.leave(nth, object, broken),
            Action::LeaveInside(nth, object) => {
                state.failures += 1;
                if broken == Broken::LeftUnpublished {
                    state.give_up(nth, object);
                } else {
                    state.kept = true;
                    let marked = state.processes[nth].is_marked(object);
                    state.processes[nth].views[object] = View::Leaving { marked };
                }
            }
            Action::End(nth) => {
                let group = state.processes[nth].group?;
                if !state.is_stated(ORIGINAL, group, broken) {
                    state.remove(group, Of::Head);
                }
                // The next process recovers the remaining memory.
                state.die(nth);
            }
            Action::Continue(nth) => state.go_on(nth, broken),
            Action::Recover(nth, pool, group) => {
                state.processes[nth].doing = state.recover(nth, pool, group, broken)?;
            }
            Action::Sweep(nth, pool, group, of) => {
                state.sweeps += 1;
                state.processes[nth].doing = Doing::Judged { pool, group, of };
            }
            Action::Copy => state.pools.push(state.pools[ORIGINAL].clone()),
            Action::Die(nth) => {
                state.deaths += 1;
                state.die(nth);
            }
            Action::CutPower => state.cut_power(),
        }
        if state.wrong.is_none() {
            state.look(broken);
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_LOSS, |_, state: &State| state.wrong.is_none()),
            Property::sometimes("memory is recovered", |_, state: &State| state.recovered),
            Property::sometimes("a leftover is removed", |model: &Demand, state: &State| {
                state.swept || model.scope.sweeps == 0
            }),
            Property::sometimes(
                "an object stays after its program left it",
                |model: &Demand, state: &State| state.kept || model.scope.failures == 0,
            ),
        ]
    }
}

impl Demand {
    fn begin(&self, state: &State, nth: usize, actions: &mut Vec<Action>) {
        let (scope, broken, process) = (&self.scope, self.broken, &state.processes[nth]);
        let is_writer = nth < scope.writers && !process.failed;
        let may_attach = is_writer && (process.group.is_some() || state.groups < scope.groups);
        for object in 0..OBJECTS {
            let stated = state.stated(ORIGINAL, object, broken);
            let unknown = stated.is_none() || broken == Broken::MemoryForgotten;
            let there = |part: &Part| Some(part.group) == process.group && part.of == Of::Object(object);
            if may_attach && unknown && !state.is_held(object) && !state.parts.iter().any(there) {
                actions.push(Action::Attach(nth, object));
            }
            let settled = !process.is_marked(object) && process.epoch.is_none();
            match process.views[object] {
                View::Out => {}
                View::In { .. } | View::Leaving { .. } if settled => {
                    if process.commit.is_none() && !process.failed {
                        actions.push(Action::Leave(nth, object));
                    }
                }
                View::In { .. } if state.failures < scope.failures && process.commit.is_none() => {
                    match broken {
                        Broken::MemoryGivenUp => actions.push(Action::Leave(nth, object)),
                        _ => actions.push(Action::LeaveInside(nth, object)),
                    }
                }
                View::In { .. } | View::Leaving { .. } => {}
            }
        }
        let done = process.commit.is_none() && process.epoch.is_none();
        if process.group.is_some() && done && (!process.has_some() || process.failed) {
            actions.push(Action::End(nth));
        }
        for pool in 0..state.pools.len() {
            for group in 1..=state.groups {
                if state.is_stated(pool, group, broken) && process.group != Some(group) {
                    actions.push(Action::Recover(nth, pool, group));
                }
            }
        }
        if state.sweeps < scope.sweeps {
            for part in &state.parts {
                for pool in [ORIGINAL, COPY].into_iter().take(state.pools.len()) {
                    if state.is_leftover(pool, part.group, broken) {
                        actions.push(Action::Sweep(nth, pool, part.group, part.of));
                    }
                }
            }
        }
    }
}

/// One process and its successor.
const ALONE: Scope = Scope {
    processes: 1,
    writers: 1,
    commits: 2,
    groups: 2,
    deaths: 1,
    cuts: 1,
    copies: 0,
    failures: 1,
    sweeps: 0,
};
/// A second process recovers and sweeps, and the file is copied.
const BESIDE: Scope = Scope { processes: 2, commits: 1, cuts: 0, copies: 1, failures: 0, sweeps: 1, ..ALONE };

#[test]
fn objects_on_demand_lose_nothing() {
    for scope in [ALONE, BESIDE] {
        holds(&format!("on demand, {scope:?}"), Demand { scope, broken: Broken::Nothing });
    }
}

#[test]
#[ignore = "minutes: cargo xtask tools protocol"]
fn objects_on_demand_lose_nothing_in_larger_scopes() {
    let scopes = [
        Scope { commits: 3, groups: 3, deaths: 2, failures: 2, sweeps: 1, ..ALONE },
        Scope { writers: 2, ..BESIDE },
        Scope { commits: 2, cuts: 1, failures: 1, ..BESIDE },
    ];
    for scope in scopes {
        holds(&format!("on demand, {scope:?}"), Demand { scope, broken: Broken::Nothing });
    }
}

#[test]
fn each_broken_rule_of_objects_on_demand_is_noticed() {
    for (broken, scope) in [
        (Broken::Unlocked, BESIDE),
        (Broken::BoundFirst, ALONE),
        (Broken::RemovedFirst, ALONE),
        (Broken::LogUnvalidated, ALONE),
        (Broken::LogClearedEarly, ALONE),
        (Broken::LogForgotten, ALONE),
        (Broken::EpochUngated, ALONE),
        (Broken::EpochEach, ALONE),
        (Broken::SyncNotAwaited, ALONE),
        (Broken::LeftUnpublished, ALONE),
        (Broken::MemoryGivenUp, ALONE),
        (Broken::FailedForgotten, ALONE),
        (Broken::MarksLost, ALONE),
        (Broken::RecoveredUnlocked, BESIDE),
        (Broken::RecoveredEach, ALONE),
        (Broken::UnfilledCounts, ALONE),
        (Broken::RemovedEarly, Scope { deaths: 2, ..ALONE }),
        (Broken::MemoryForgotten, ALONE),
        (Broken::JudgedUnlocked, BESIDE),
        (Broken::SweptByCopy, BESIDE),
        (Broken::RecoveredByCopy, BESIDE),
        (Broken::BootIgnored, ALONE),
    ] {
        fails(&format!("on demand, {broken:?}"), Demand { scope, broken });
    }
}
