//! Rules L1 to L12: two processes psync one object in two lanes. Processes die, the power is cut,
//! and write-back fails.
//!
//! The psync of number *n* sets both of the object's words to *n*. A power cut keeps any subset of
//! the pieces (batches, headers, words) without a barrier, and leaves headers and batches half
//! written. A page with a failed write-back shows bytes that the medium lacks, until it is dropped;
//! each process with the file open gets one report.

mod steps;

use super::{NO_LOSS, fails, holds};
use stateright::{Model, Property};

const LANES: usize = 2;
const ROOM: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// Rule L1: a process takes a lane that a living process has.
    LaneUnclaimed,
    /// Rule L2: a psync is acknowledged before its durable write returns.
    AcknowledgedEarly,
    /// Rule L3: a batch is applied before it is durable.
    AppliedFirst,
    /// Rule L4: batches of any generation count.
    AnyGeneration,
    /// Rule L4: a checkpoint does not change the generation's number.
    SameGeneration,
    /// Rule L5: a lane is voided before the primaries are durable.
    EarlyCheckpoint,
    /// Rule L5: batches follow a generation that is not durable.
    GenerationUnwritten,
    /// Rule L6: the first copy of the header alone states the generation.
    FirstCopyAlone,
    /// Rule L7: a lane is taken over without a durable statement.
    GenerationUnstated,
    /// Rule L7: the statement overwrites the copy that may be the only durable one.
    SureCopyRisked,
    /// Rule L8: visible batches are redone as if they were durable.
    VisibleIsDurable,
    /// Rule L9: a recovery writes only the words that differ.
    RedoOnlyDifferent,
    /// Rule L9: a lane is voided before its redo is durable.
    EarlyVoid,
    /// Rule L10: sections of any binding count.
    BindingIgnored,
    /// Rule L10: an object leaves its lane while its primary is not durable.
    UnsettledDetach,
    /// Rule L11: a process goes on with its log after a failed write.
    FailureIgnored,
    /// Rule L12: a visible table is taken for durable.
    TableVisible,
    /// Rule L12: an object is psynced before its binding is durable.
    BoundLater,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) processes: usize,
    pub(crate) lanes: usize,
    pub(crate) psyncs: u8,
    pub(crate) attaches: u8,
    pub(crate) deaths: u8,
    pub(crate) cuts: u8,
    pub(crate) failures: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    pub(crate) scope: Scope,
    pub(crate) broken: Broken,
}

/// A piece of the file, as processes see it and on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Piece<T> {
    seen: T,
    durable: T,
    /// It awaits write-back; if not, and the two differ, it is lost.
    dirty: bool,
}

impl<T: Copy + PartialEq> Piece<T> {
    fn new(value: T) -> Self {
        Piece { seen: value, durable: value, dirty: false }
    }

    fn write(&mut self, value: T) {
        self.seen = value;
        self.dirty = value != self.durable;
    }

    fn persist(&mut self) {
        self.durable = self.seen;
        self.dirty = false;
    }

    fn write_back(&mut self) {
        if self.dirty {
            self.persist();
        }
    }

    fn is_lost(&self) -> bool {
        !self.dirty && self.seen != self.durable
    }

    /// The power fails: a dirty page gets the nth of its possible outcomes.
    fn cut(&mut self, nth: u16, torn: Option<T>) {
        self.durable = match nth {
            _ if !self.dirty => self.durable,
            0 => self.durable,
            1 => self.seen,
            _ => torn.unwrap_or(self.seen),
        };
        self.seen = self.durable;
        self.dirty = false;
    }
}

/// `None`: half written.
type Header = Option<u8>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    Empty,
    Torn,
    Batch { generation: u8, sequence: u8, binding: u8, value: u8 },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane {
    headers: [Piece<Header>; 2],
    slots: [Piece<Slot>; ROOM as usize],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Table {
    /// Generation at the acquisition, and the first binding since.
    lanes: [(u8, u8); LANES],
    next_binding: u8,
    /// The object's binding, and its lane if bound.
    binding: u8,
    lane: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Change {
    table: Table,
    durable: bool,
    dirty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Hold {
    generation: u8,
    sequence: u8,
    begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Rest,
    Judge { lane: u8 },
    Redo { lane: u8, log: (u8, u8) },
    MakeDurable { lane: u8, generation: u8 },
    TakeOver { lane: u8, generation: u8 },
    Stated { lane: u8, generation: u8, copy: u8 },
    Bind { lane: u8, generation: u8 },
    Bound { lane: u8, generation: u8 },
    Written { value: u8 },
    Apply { value: u8 },
    Voided,
    Left,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Process {
    open: bool,
    /// A failed write-back awaits its report.
    untold: bool,
    holds: [Option<Hold>; LANES],
    attached: Option<(u8, u8)>,
    step: Step,
}

const GONE: Process =
    Process { open: false, untold: false, holds: [None; LANES], attached: None, step: Step::Rest };

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    words: [Piece<u8>; 2],
    lanes: Vec<Lane>,
    /// All changes since the last durable state, which comes first.
    table: Vec<Change>,
    locked: Option<usize>,
    processes: Vec<Process>,
    acknowledged: u8,
    tried: u8,
    deaths: u8,
    cuts: u8,
    failures: u8,
    recovered: bool,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Word(usize),
    Header(usize, usize),
    Slot(usize, usize),
    Change(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Attach(usize),
    Psync(usize),
    Checkpoint(usize),
    Detach(usize),
    Close(usize),
    Continue(usize),
    Die(usize),
    /// The power fails, with the nth outcome.
    Cut(u16),
    FailWriteBack(Place),
    DropPage(Place),
}

impl State {
    fn new(scope: &Scope) -> State {
        let lane =
            Lane { headers: [Piece::new(Some(0)); 2], slots: [Piece::new(Slot::Empty); ROOM as usize] };
        let table = Table { lanes: [(1, 0); LANES], next_binding: 1, binding: 0, lane: None };
        State {
            words: [Piece::new(0); 2],
            lanes: vec![lane; scope.lanes],
            table: vec![Change { table, durable: true, dirty: false }],
            locked: None,
            processes: vec![GONE; scope.processes],
            acknowledged: 0,
            tried: 0,
            deaths: 0,
            cuts: 0,
            failures: 0,
            recovered: false,
            wrong: None,
        }
    }

    fn table(&self) -> Table {
        self.table.last().expect("the table of the format").table
    }

    fn barrier(&mut self) {
        self.words.iter_mut().for_each(Piece::write_back);
        for lane in &mut self.lanes {
            lane.headers.iter_mut().for_each(Piece::write_back);
            lane.slots.iter_mut().for_each(Piece::write_back);
        }
        for change in self.table.iter_mut().filter(|change| change.dirty) {
            (change.durable, change.dirty) = (true, false);
        }
        self.forget_changes();
    }

    fn forget_changes(&mut self) {
        let durable = self.table.iter().take_while(|change| change.durable).count();
        self.table.drain(..durable.saturating_sub(1));
    }

    /// A call that asks for durability; `false`: it reports a failed write-back, and the process
    /// restarts.
    fn asks(&mut self, process: usize, broken: Broken) -> bool {
        let failed = std::mem::take(&mut self.processes[process].untold) && broken != Broken::FailureIgnored;
        if failed {
            self.processes[process] = Process { open: true, ..GONE };
            self.unlock(process);
        }
        !failed
    }

    fn unlock(&mut self, process: usize) {
        if self.locked == Some(process) {
            self.locked = None;
        }
    }

    fn apply(&mut self, value: u8) {
        self.words.iter_mut().for_each(|word| word.write(value));
    }

    fn publish(&mut self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table();
        change(&mut table);
        self.table.push(Change { table, durable: false, dirty: true });
    }

    fn publish_durably(&mut self) {
        if let Some(change) = self.table.last_mut() {
            (change.durable, change.dirty) = (true, false);
        }
        self.forget_changes();
    }

    /// Takes the table. `false`: the process got a report of a failure.
    fn catch_up(&mut self, process: usize, broken: Broken) -> bool {
        self.locked = Some(process);
        if broken == Broken::TableVisible {
            return true;
        }
        if !self.asks(process, broken) {
            return false;
        }
        self.table.iter_mut().for_each(|change| (change.durable, change.dirty) = (true, false));
        self.forget_changes();
        true
    }

    fn look(&mut self) {
        let [first, second] = self.words.map(|word| word.seen);
        if first != second {
            self.wrong = Some("the object is torn");
        } else if first < self.acknowledged {
            self.wrong = Some("a psync that was acknowledged, or seen, is gone");
        }
        self.acknowledged = self.acknowledged.max(first);
    }

    /// The pieces, with their numbers of outcomes of a power cut.
    fn pieces(&self) -> Vec<(Place, u16)> {
        let of = |dirty: bool, outcomes| if dirty { outcomes } else { 1 };
        let mut pieces = Vec::new();
        for (nth, word) in self.words.iter().enumerate() {
            pieces.push((Place::Word(nth), of(word.dirty, 2)));
        }
        for (lane, Lane { headers, slots }) in self.lanes.iter().enumerate() {
            for (nth, copy) in headers.iter().enumerate() {
                pieces.push((Place::Header(lane, nth), of(copy.dirty, 3)));
            }
            for (nth, slot) in slots.iter().enumerate() {
                pieces.push((Place::Slot(lane, nth), of(slot.dirty, 3)));
            }
        }
        for (nth, change) in self.table.iter().enumerate() {
            pieces.push((Place::Change(nth), of(change.dirty, 2)));
        }
        pieces
    }

    fn cut(&mut self, mut outcome: u16) {
        let mut lost = self.table.len();
        for (place, outcomes) in self.pieces() {
            let nth = outcome % outcomes;
            outcome /= outcomes;
            match place {
                Place::Word(word) => self.words[word].cut(nth, None),
                Place::Header(lane, copy) => self.lanes[lane].headers[copy].cut(nth, Some(None)),
                Place::Slot(lane, slot) => self.lanes[lane].slots[slot].cut(nth, Some(Slot::Torn)),
                Place::Change(change) => {
                    let one = &mut self.table[change];
                    one.durable |= one.dirty && nth == 1;
                    one.dirty = false;
                    if !one.durable {
                        lost = lost.min(change);
                    }
                }
            }
        }
        self.table.truncate(lost);
        self.forget_changes();
        self.processes.iter_mut().for_each(|process| *process = GONE);
        self.locked = None;
    }

    fn fail_write_back(&mut self, place: Place) {
        match place {
            Place::Word(word) => self.words[word].dirty = false,
            Place::Header(lane, copy) => self.lanes[lane].headers[copy].dirty = false,
            Place::Slot(lane, slot) => self.lanes[lane].slots[slot].dirty = false,
            Place::Change(change) => self.table[change].dirty = false,
        }
        for process in self.processes.iter_mut().filter(|process| process.open) {
            process.untold = true;
        }
    }

    fn lost(&self) -> Vec<Place> {
        let mut lost = Vec::new();
        lost.extend((0..2).filter(|word| self.words[*word].is_lost()).map(Place::Word));
        for (lane, Lane { headers, slots }) in self.lanes.iter().enumerate() {
            lost.extend((0..2).filter(|copy| headers[*copy].is_lost()).map(|copy| Place::Header(lane, copy)));
            let slots = (0..slots.len()).filter(|slot| slots[*slot].is_lost());
            lost.extend(slots.map(|slot| Place::Slot(lane, slot)));
        }
        let changes = self.table.iter().enumerate().filter(|(_, change)| !change.durable && !change.dirty);
        lost.extend(changes.map(|(nth, _)| Place::Change(nth)));
        lost
    }

    fn drop_page(&mut self, place: Place) {
        match place {
            Place::Word(word) => self.words[word].seen = self.words[word].durable,
            Place::Header(lane, copy) => {
                let copy = &mut self.lanes[lane].headers[copy];
                copy.seen = copy.durable;
            }
            Place::Slot(lane, slot) => {
                let slot = &mut self.lanes[lane].slots[slot];
                slot.seen = slot.durable;
            }
            Place::Change(change) => self.table.truncate(change),
        }
    }
}

impl Model for Lanes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(&self.scope)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.wrong.is_some() {
            return;
        }
        let scope = &self.scope;
        let is_free = state.processes.iter().all(|process| process.attached.is_none());
        for (nth, process) in state.processes.iter().enumerate() {
            if process.step != Step::Rest {
                actions.push(Action::Continue(nth));
            } else if let Some((_, lane)) = process.attached {
                let hold = process.holds[lane as usize].expect("a lane");
                if state.tried < scope.psyncs && hold.sequence < ROOM {
                    actions.push(Action::Psync(nth));
                }
                if hold.sequence > 0 {
                    actions.push(Action::Checkpoint(nth));
                }
                if state.locked.is_none() {
                    actions.push(Action::Detach(nth));
                }
            } else {
                let may = state.table().next_binding <= scope.attaches;
                if may && is_free && state.locked.is_none() {
                    actions.push(Action::Attach(nth));
                }
                if process.open {
                    actions.push(Action::Close(nth));
                }
            }
            if process.open && state.deaths < scope.deaths {
                actions.push(Action::Die(nth));
            }
        }
        if state.cuts < scope.cuts {
            let outcomes = state.pieces().iter().map(|(_, outcomes)| outcomes).product();
            actions.extend((0..outcomes).map(Action::Cut));
        }
        if state.failures < scope.failures {
            let dirty = state.pieces().into_iter().filter(|(_, outcomes)| *outcomes > 1);
            actions.extend(dirty.map(|(place, _)| Action::FailWriteBack(place)));
        }
        actions.extend(state.lost().into_iter().map(Action::DropPage));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let (mut state, broken) = (last.clone(), self.broken);
        match action {
            Action::Attach(nth) => {
                state.processes[nth].open = true;
                if !state.catch_up(nth, broken) {
                    return Some(state);
                }
                let Some(lane) = state.choose(nth, broken) else {
                    return None;
                };
                let step = match state.processes[nth].holds[lane as usize] {
                    Some(hold) => Step::Bind { lane, generation: hold.generation },
                    None => Step::Judge { lane },
                };
                state.then(nth, step);
            }
            Action::Psync(nth) => {
                if !state.asks(nth, broken) {
                    return Some(state);
                }
                let (binding, lane) = state.processes[nth].attached?;
                let Hold { generation, sequence, .. } = state.processes[nth].holds[lane as usize]?;
                state.tried += 1;
                let value = state.tried;
                if broken == Broken::AppliedFirst {
                    state.apply(value);
                }
                if broken == Broken::AcknowledgedEarly {
                    state.acknowledged = value;
                }
                let batch = Slot::Batch { generation, sequence, binding, value };
                state.lanes[lane as usize].slots[sequence as usize].write(batch);
                state.then(nth, Step::Written { value });
            }
            Action::Checkpoint(nth) => {
                let (_, lane) = state.processes[nth].attached?;
                if broken != Broken::EarlyCheckpoint {
                    if !state.asks(nth, broken) {
                        return Some(state);
                    }
                    state.barrier();
                }
                let hold = state.processes[nth].holds[lane as usize]?;
                let next = hold.generation + u8::from(broken != Broken::SameGeneration);
                state.lanes[lane as usize].headers[0].write(Some(next));
                state.then(nth, Step::Voided);
            }
            Action::Detach(nth) => {
                if broken != Broken::UnsettledDetach {
                    if !state.asks(nth, broken) {
                        return Some(state);
                    }
                    state.barrier();
                }
                if state.catch_up(nth, broken) {
                    state.publish(|table| table.lane = None);
                    state.then(nth, Step::Left);
                }
            }
            Action::Close(nth) => {
                let process = std::mem::replace(&mut state.processes[nth], GONE);
                for (lane, hold) in process.holds.into_iter().enumerate() {
                    if let Some(Hold { generation, begun: true, .. }) = hold {
                        state.lanes[lane].headers[1].write(Some(generation + 1));
                    }
                }
            }
            Action::Continue(nth) => state.go_on(nth, broken),
            Action::Die(nth) => {
                state.deaths += 1;
                state.processes[nth] = GONE;
                state.unlock(nth);
            }
            Action::Cut(outcome) => {
                state.cuts += 1;
                state.cut(outcome);
            }
            Action::FailWriteBack(place) => {
                state.failures += 1;
                state.fail_write_back(place);
            }
            Action::DropPage(place) => state.drop_page(place),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_LOSS, |_, state: &State| state.wrong.is_none()),
            Property::sometimes("a batch is redone", |_, state: &State| state.recovered),
        ]
    }
}

/// Two processes, two lanes, one death, one power cut, one failed write-back.
const SMALL: Scope =
    Scope { processes: 2, lanes: 2, psyncs: 2, attaches: 3, deaths: 1, cuts: 1, failures: 1 };
/// One process and its successors.
const ALONE: Scope =
    Scope { processes: 1, lanes: 1, psyncs: 3, attaches: 3, deaths: 2, cuts: 1, failures: 1 };

#[test]
fn lanes_lose_nothing() {
    for scope in [ALONE, SMALL] {
        holds(&format!("lanes, {scope:?}"), Lanes { scope, broken: Broken::Nothing });
    }
}

#[test]
#[ignore = "minutes: cargo xtask tools protocol"]
fn lanes_lose_nothing_in_larger_scopes() {
    let scopes = [Scope { attaches: 4, ..ALONE }, Scope { deaths: 2, attaches: 4, ..SMALL }];
    for scope in scopes {
        holds(&format!("lanes, {scope:?}"), Lanes { scope, broken: Broken::Nothing });
    }
}

#[test]
fn each_broken_rule_of_lanes_is_noticed() {
    let two_cuts = Scope { psyncs: 2, attaches: 4, deaths: 0, cuts: 3, failures: 0, ..ALONE };
    let beside = Scope { attaches: 4, psyncs: 3, cuts: 0, failures: 0, ..SMALL };
    for (broken, scope) in [
        (Broken::LaneUnclaimed, beside),
        (Broken::AcknowledgedEarly, ALONE),
        (Broken::AppliedFirst, ALONE),
        (Broken::AnyGeneration, ALONE),
        (Broken::SameGeneration, ALONE),
        (Broken::EarlyCheckpoint, ALONE),
        (Broken::GenerationUnwritten, ALONE),
        (Broken::FirstCopyAlone, ALONE),
        (Broken::GenerationUnstated, two_cuts),
        (Broken::SureCopyRisked, Scope { deaths: 1, failures: 1, attaches: 4, cuts: 2, psyncs: 2, ..ALONE }),
        (Broken::VisibleIsDurable, ALONE),
        (Broken::RedoOnlyDifferent, ALONE),
        (Broken::EarlyVoid, ALONE),
        (Broken::BindingIgnored, beside),
        (Broken::UnsettledDetach, ALONE),
        (Broken::FailureIgnored, ALONE),
        (Broken::TableVisible, ALONE),
        (Broken::BoundLater, ALONE),
    ] {
        fails(&format!("lanes, {broken:?}"), Lanes { scope, broken });
    }
}
