//! Ownership of a replica's prefix (docs/decisions/0073-replication.md): processes that claim, end,
//! ship, stall and come late, in any order.
//!
//! No step asks a clock: each process may believe at any time that the owner's lease ran out, as
//! with clocks of any speed. Nothing acknowledged is lost: readers find each acknowledged segment,
//! from the process that put it, before the end of its epoch.

use super::{NO_LOSS, fails, holds};
use stateright::{Model, Property};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// A lease that ran out by the claimant's clock is the end: no boundary record is put.
    ClockTrusted,
    /// Collection removes boundary records, too: a stalled put lands in the hole.
    BoundaryCollected,
    /// Looking, then putting: no put is conditional.
    PutUnconditional,
    /// A name that is taken after a timeout is taken by the process itself.
    FoundIsOwn,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) processes: usize,
    pub(crate) epochs: u8,
    pub(crate) segments: u8,
    pub(crate) late: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    pub(crate) scope: Scope,
    pub(crate) broken: Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    Segment(usize),
    Boundary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Claim {
    No,
    /// The last epoch and its last segment, when it looked.
    Looked(u8, u8),
    /// The epoch has ended there.
    Ended(u8, u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Process {
    claim: Claim,
    /// Its epoch, and the number of its next segment.
    owns: Option<(u8, u8)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    slots: BTreeMap<(u8, u8), Slot>,
    /// Last segment before each epoch, from the first.
    begins: Vec<(u8, u8)>,
    processes: Vec<Process>,
    /// Puts under way: process, epoch, number.
    late: Vec<(usize, u8, u8)>,
    sent: usize,
    acknowledged: Vec<(usize, u8, u8)>,
    /// Epochs up to here are collected.
    collected: u8,
    fenced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Look(usize),
    End(usize),
    Begin(usize),
    /// A put that is answered.
    Put(usize),
    /// A put whose answer is not waited for; it arrives later, or never.
    Send(usize),
    Arrive(usize),
    Collect,
}

impl State {
    fn last(&self) -> (u8, u8) {
        let epoch = self.begins.len() as u8;
        let numbers = self.slots.iter().filter(|((of, _), slot)| *of == epoch && **slot != Slot::Boundary);
        (epoch, numbers.map(|((_, number), _)| *number).max().unwrap_or(0))
    }

    fn acknowledge(&mut self, process: usize, epoch: u8, number: u8) {
        self.acknowledged.push((process, epoch, number));
        self.processes[process].owns = Some((epoch, number + 1));
    }

    fn is_found(&self, (process, epoch, number): (usize, u8, u8)) -> bool {
        let next = self.begins.get(epoch as usize);
        let counts = next.is_none_or(|(of, last)| *of != epoch || number <= *last);
        // A later epoch has begun with all that the readers of a collected one found.
        let there = self.slots.get(&(epoch, number)) == Some(&Slot::Segment(process));
        counts && (there || epoch <= self.collected)
    }
}

impl Model for Epochs {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            slots: BTreeMap::new(),
            begins: Vec::new(),
            processes: vec![Process { claim: Claim::No, owns: None }; self.scope.processes],
            late: Vec::new(),
            sent: 0,
            acknowledged: Vec::new(),
            collected: 0,
            fenced: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (nth, process) in state.processes.iter().enumerate() {
            match process.claim {
                Claim::No if (state.begins.len() as u8) < self.scope.epochs => {
                    actions.push(Action::Look(nth))
                }
                Claim::No => {}
                Claim::Looked(..) => actions.push(Action::End(nth)),
                Claim::Ended(..) => actions.push(Action::Begin(nth)),
            }
            if process.owns.is_some_and(|(_, number)| number <= self.scope.segments) {
                actions.push(Action::Put(nth));
                if state.sent < self.scope.late {
                    actions.push(Action::Send(nth));
                }
            }
        }
        actions.extend((0..state.late.len()).map(Action::Arrive));
        let (epoch, last) = state.last();
        if last > 0 && state.collected + 1 < epoch {
            actions.push(Action::Collect);
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let (mut state, broken) = (before.clone(), self.broken);
        match action {
            Action::Look(nth) => {
                let (epoch, last) = state.last();
                state.processes[nth].claim = match epoch {
                    0 => Claim::Ended(0, 0),
                    _ => Claim::Looked(epoch, last),
                };
            }
            Action::End(nth) => {
                let Claim::Looked(epoch, last) = state.processes[nth].claim else { return None };
                let found = state.slots.get(&(epoch, last + 1)).copied();
                state.processes[nth].claim = match found {
                    _ if broken == Broken::ClockTrusted => Claim::Ended(epoch, last),
                    Some(Slot::Segment(_)) if broken != Broken::PutUnconditional => {
                        Claim::Looked(epoch, last + 1)
                    }
                    _ => {
                        state.slots.insert((epoch, last + 1), Slot::Boundary);
                        Claim::Ended(epoch, last)
                    }
                };
            }
            Action::Begin(nth) => {
                let Claim::Ended(epoch, last) = state.processes[nth].claim else { return None };
                state.processes[nth].claim = Claim::No;
                let absent = state.begins.len() == epoch as usize;
                if absent {
                    state.begins.push((epoch, last));
                } else if broken == Broken::PutUnconditional {
                    state.begins[epoch as usize] = (epoch, last);
                }
                if absent || broken == Broken::PutUnconditional {
                    state.processes[nth].owns = Some((epoch + 1, 1));
                }
            }
            Action::Put(nth) => {
                let (epoch, number) = state.processes[nth].owns?;
                let own = Slot::Segment(nth);
                match state.slots.get(&(epoch, number)) {
                    Some(found) if *found != own && broken != Broken::PutUnconditional => {
                        if broken == Broken::FoundIsOwn {
                            state.acknowledge(nth, epoch, number);
                        } else {
                            (state.processes[nth].owns, state.fenced) = (None, true);
                        }
                    }
                    _ => {
                        state.slots.insert((epoch, number), own);
                        state.acknowledge(nth, epoch, number);
                    }
                }
            }
            Action::Send(nth) => {
                let (epoch, number) = state.processes[nth].owns?;
                state.sent += 1;
                state.late.push((nth, epoch, number));
            }
            Action::Arrive(which) => {
                let (nth, epoch, number) = state.late.remove(which);
                let taken = state.slots.contains_key(&(epoch, number));
                if !taken || broken == Broken::PutUnconditional {
                    state.slots.insert((epoch, number), Slot::Segment(nth));
                    // The answer arrives, too.
                    if state.processes[nth].owns == Some((epoch, number)) {
                        state.acknowledge(nth, epoch, number);
                    }
                }
            }
            Action::Collect => {
                state.collected += 1;
                let collected = state.collected;
                state.slots.retain(|(epoch, _), slot| {
                    *epoch != collected || (*slot == Slot::Boundary && broken != Broken::BoundaryCollected)
                });
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_LOSS, |_, state: &State| {
                state.acknowledged.iter().all(|one| state.is_found(*one))
            }),
            Property::sometimes("an owner finds its epoch ended", |_, state: &State| state.fenced),
            Property::sometimes("an epoch is collected", |_, state: &State| state.collected > 0),
        ]
    }
}

const SMALL: Scope = Scope { processes: 2, epochs: 2, segments: 2, late: 1 };

#[test]
fn s2_23_owners_of_a_replica_lose_nothing() {
    for scope in [SMALL, Scope { epochs: 3, segments: 1, ..SMALL }] {
        holds(&format!("epochs, {scope:?}"), Epochs { scope, broken: Broken::Nothing });
    }
}

#[test]
#[ignore = "minutes: cargo xtask tools protocol"]
fn s2_23_owners_of_a_replica_lose_nothing_in_larger_scopes() {
    for scope in [Scope { processes: 3, ..SMALL }, Scope { epochs: 3, late: 2, ..SMALL }] {
        holds(&format!("epochs, {scope:?}"), Epochs { scope, broken: Broken::Nothing });
    }
}

#[test]
fn s2_23_each_published_mistake_is_noticed() {
    for broken in
        [Broken::ClockTrusted, Broken::BoundaryCollected, Broken::PutUnconditional, Broken::FoundIsOwn]
    {
        fails(&format!("epochs, {broken:?}"), Epochs { scope: SMALL, broken });
    }
}
