//! Rules G1 to G10: a guard, and writers that register, commit, publish and die at any step; the
//! power fails and comes back.
//!
//! After a fully durable round during a failure, the power may go at any moment: every acknowledged
//! commit of the guard's writers, or of memory that it recovers, is there. Lines arrive in order,
//! and late.

use super::{NO_LOSS, fails, holds};
use stateright::{Model, Property};

const BUDGET: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// Rule G1: a writer keeps its bound when the guard is gone.
    BoundKept,
    /// Rule G2: a writer that registers during a failure is not asked.
    LateUnasked,
    /// Rule G2: a quiet writer is refused like a silent client.
    QuietExpired,
    /// Rule G3: a commit beyond the bound is acknowledged before it is durable.
    BudgetIgnored,
    /// Rule G3: writers are told of a bound while the power fails.
    BudgetWhileFailing,
    /// Rule G4: a writer sets its bound once its epoch is over.
    BoundAfterEpoch,
    /// Rule G4: a writer answers before its epoch is durable.
    AnsweredEarly,
    /// Rule G5: an answer to an earlier request counts.
    TokenIgnored,
    /// Rule G6: a silent writer is left out.
    SilentLeftOut,
    /// Rule G6: a process is killed by its reused number.
    KilledByNumber,
    /// Rule G6: a rehearsal kills.
    RehearsalKills,
    /// Rule G7: a writer whose connection ends has published.
    GoneIsDurable,
    /// Rule G8: memory in recovery is not in the round.
    RecoveryUncounted,
    /// Rule G9: a writer says farewell with unpublished commits.
    FarewellUnpublished,
    /// Rule G10: a blind detector reports that the power is back.
    BlindIsFine,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) writers: usize,
    pub(crate) commits: u8,
    pub(crate) deaths: u8,
    pub(crate) rounds: u8,
    pub(crate) ends: u8,
    pub(crate) connections: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct Guards {
    pub(crate) scope: Scope,
    pub(crate) broken: Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ToGuard {
    Writer,
    Published(u8),
    Bye,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ToWriter {
    Budget(u8),
    Publish(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Publishing {
    No,
    /// The epoch, or the bound, is next.
    First(u8),
    Answer(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Writer {
    /// Distinguishes processes with this number.
    life: u8,
    alive: bool,
    /// It has detached all objects; memory stays if the pool lacks commits.
    detached: bool,
    commits: u8,
    durable: u8,
    bound: Option<u8>,
    linked: bool,
    publishing: Publishing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Client {
    life: u8,
    registered: bool,
    told: Option<u8>,
    to_guard: Vec<ToGuard>,
    to_writer: Vec<ToWriter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    token: u8,
    rehearsal: bool,
    late: bool,
    open: Vec<(usize, u8)>,
    /// All ended ones are durable.
    durable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    writers: Vec<Writer>,
    clients: Vec<Option<Client>>,
    fails: bool,
    failing: bool,
    up: bool,
    token: u8,
    round: Option<Round>,
    recovering: Vec<(usize, u8)>,
    /// Writers and memory of the guard at the round's begin, reported as durable.
    promised: Vec<(usize, u8)>,
    known: Vec<(usize, u8)>,
    deaths: u8,
    ends: u8,
    connections: u8,
    killed: bool,
    wrong: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Commit(usize),
    Connect(usize),
    Follow(usize),
    Publish(usize),
    FindClosed(usize),
    /// It detaches its objects, after an epoch or, after a failed one, without.
    Detach(usize, bool),
    Die(usize),
    /// Another process with the same number attaches, and recovers first.
    Replace(usize),
    Take(usize),
    FindDead(usize),
    Recovered(usize),
    RunOut,
    Expire(usize),
    FailPower,
    ReturnPower,
    GoBlind,
    Rehearse,
    EndGuard,
    StartGuard,
}

impl State {
    fn new(scope: &Scope) -> State {
        let writer = Writer {
            life: 0,
            alive: true,
            detached: false,
            commits: 0,
            durable: 0,
            bound: None,
            linked: false,
            publishing: Publishing::No,
        };
        State {
            writers: vec![writer; scope.writers],
            clients: vec![None; scope.writers],
            fails: false,
            failing: false,
            up: true,
            token: 0,
            round: None,
            recovering: Vec::new(),
            promised: Vec::new(),
            known: Vec::new(),
            deaths: 0,
            ends: 0,
            connections: 0,
            killed: false,
            wrong: None,
        }
    }

    fn registered(&self) -> Vec<(usize, u8)> {
        let registered = |client: &Client| client.registered.then_some(client.life);
        let clients = self.clients.iter().enumerate();
        clients.filter_map(|(nth, client)| Some((nth, client.as_ref().and_then(registered)?))).collect()
    }

    fn send(&mut self, nth: usize, line: ToWriter) {
        if let Some(client) = &mut self.clients[nth] {
            client.to_writer.push(line);
        }
    }

    fn tell_budgets(&mut self, all: bool, broken: Broken) {
        if (self.failing || self.round.is_some()) && broken != Broken::BudgetWhileFailing {
            return;
        }
        let registered = self.registered();
        let share = BUDGET / registered.len().max(1) as u8;
        for (nth, _) in registered {
            let told = self.clients[nth].as_mut().map(|client| client.told.replace(share));
            if all || told != Some(Some(share)) {
                self.send(nth, ToWriter::Budget(share));
            }
        }
    }

    fn begin_round(&mut self, rehearsal: bool, broken: Broken) {
        self.token += 1;
        let asked = self.registered();
        let mut open = asked.clone();
        self.known = [asked.clone(), self.recovering.clone()].concat();
        if broken != Broken::RecoveryUncounted {
            open.extend(&self.recovering);
        }
        self.round = Some(Round { token: self.token, rehearsal, late: false, open, durable: true });
        asked.iter().for_each(|(nth, _)| self.send(*nth, ToWriter::Publish(self.token)));
        self.end_round(broken);
    }

    fn end(&mut self, who: (usize, u8), durable: bool, broken: Broken) {
        if let Some(round) = &mut self.round
            && round.open.contains(&who)
        {
            round.open.retain(|open| *open != who);
            round.durable &= durable;
        }
        self.end_round(broken);
    }

    fn end_round(&mut self, broken: Broken) {
        let Some(round) = self.round.take_if(|round| round.open.is_empty()) else { return };
        if round.durable && !round.rehearsal && self.failing {
            self.promised = self.known.clone();
        }
        self.tell_budgets(true, broken);
    }

    fn departed(&mut self, nth: usize, broken: Broken) {
        let Some(client) = self.clients[nth].take() else { return };
        if client.registered {
            let who = (nth, client.life);
            if broken == Broken::GoneIsDurable {
                self.end(who, true, broken);
            } else if !self.recovering.contains(&who) {
                self.recovering.push(who);
            }
            self.tell_budgets(false, broken);
        }
    }

    fn take(&mut self, nth: usize, broken: Broken) {
        let writer = self.writers[nth].clone();
        let Some(client) = &mut self.clients[nth] else { return };
        let life = client.life;
        if client.to_guard.is_empty() {
            return self.departed(nth, broken);
        }
        match client.to_guard.remove(0) {
            ToGuard::Writer if !writer.alive || writer.life != life => {
                self.clients[nth] = None;
                self.recovering.push((nth, life));
            }
            ToGuard::Writer => {
                client.registered = true;
                if self.failing && broken != Broken::LateUnasked {
                    self.send(nth, ToWriter::Publish(self.token));
                }
                self.tell_budgets(false, broken);
            }
            ToGuard::Published(token) => {
                let is_this = |round: &Round| round.token == token || broken == Broken::TokenIgnored;
                if self.round.as_ref().is_some_and(is_this) {
                    self.end((nth, life), true, broken);
                }
            }
            ToGuard::Bye => {
                self.clients[nth] = None;
                self.end((nth, life), true, broken);
                self.tell_budgets(false, broken);
            }
        }
    }

    fn run_out(&mut self, broken: Broken) {
        let Some(round) = &mut self.round else { return };
        round.late = true;
        let (rehearsal, open) = (round.rehearsal, round.open.clone());
        for who in open {
            let (nth, life) = who;
            let is_there = self.clients[nth].as_ref().is_some_and(|client| client.life == life);
            if rehearsal && broken != Broken::RehearsalKills {
                self.end(who, false, broken);
            } else if broken == Broken::SilentLeftOut {
                self.end(who, true, broken);
            } else if is_there {
                let killed = &mut self.writers[nth];
                if killed.life == life || broken == Broken::KilledByNumber {
                    if killed.alive && (killed.life != life || rehearsal) {
                        self.wrong = Some("a process is killed that no round waits for");
                    }
                    killed.alive = false;
                    self.killed = true;
                }
            }
        }
    }

    fn lacks(&self, (nth, life): (usize, u8)) -> bool {
        let writer = &self.writers[nth];
        // A later process has recovered this one's memory.
        writer.life == life && writer.durable < writer.commits
    }

    fn look(&mut self) {
        if self.fails && self.promised.iter().any(|who| self.lacks(*who)) {
            self.wrong = Some("a commit is lost, and a round said that all are durable");
        }
        for (nth, writer) in self.writers.iter().enumerate().filter(|(_, writer)| writer.alive) {
            let client = self.clients[nth].as_ref().filter(|client| client.life == writer.life);
            let quiet = client.filter(|client| client.registered && client.to_writer.is_empty());
            let idle = writer.publishing == Publishing::No && writer.linked;
            if self.failing && self.up && quiet.is_some() && idle && writer.bound != Some(0) {
                self.wrong = Some("the power fails, and a writer has room for commits that are not durable");
            }
            if !writer.linked && writer.bound.is_some() {
                self.wrong = Some("a guard that is gone makes commits slow");
            }
        }
    }
}

impl Writer {
    fn commit(&mut self, broken: Broken) {
        let pending = self.commits - self.durable;
        self.commits += 1;
        if self.bound.is_some_and(|bound| pending + 1 > bound) && broken != Broken::BudgetIgnored {
            self.durable = self.commits;
        }
    }

    fn begin_life(&mut self) {
        *self = Writer {
            life: self.life + 1,
            alive: true,
            detached: false,
            commits: 0,
            durable: 0,
            bound: None,
            linked: false,
            publishing: Publishing::No,
        };
    }
}

impl Model for Guards {
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
        for (nth, writer) in state.writers.iter().enumerate() {
            let client = state.clients[nth].as_ref();
            let own = client.filter(|client| client.life == writer.life && writer.linked);
            if writer.alive && !writer.detached {
                if writer.commits < scope.commits {
                    actions.push(Action::Commit(nth));
                }
                if state.up && !writer.linked && client.is_none() && state.connections < scope.connections {
                    actions.push(Action::Connect(nth));
                }
                match writer.publishing {
                    Publishing::No if own.is_some_and(|client| !client.to_writer.is_empty()) => {
                        actions.push(Action::Follow(nth));
                    }
                    Publishing::No => {
                        actions.push(Action::Detach(nth, true));
                        if writer.durable < writer.commits {
                            actions.push(Action::Detach(nth, false));
                        }
                    }
                    Publishing::First(_) | Publishing::Answer(_) => actions.push(Action::Publish(nth)),
                }
            }
            if writer.linked && own.is_none() && writer.publishing == Publishing::No {
                actions.push(Action::FindClosed(nth));
            }
            if writer.alive && state.deaths < scope.deaths {
                actions.push(Action::Die(nth));
            }
            if !writer.alive && writer.life == 0 {
                actions.push(Action::Replace(nth));
            }
            if let Some(client) = client {
                let closed = own.is_none() || !writer.alive;
                if !client.to_guard.is_empty() || closed {
                    actions.push(Action::Take(nth));
                }
                let dead = !writer.alive || writer.life != client.life;
                if client.registered && dead {
                    actions.push(Action::FindDead(nth));
                }
                if !client.registered || broken == Broken::QuietExpired {
                    actions.push(Action::Expire(nth));
                }
            }
        }
        actions.extend((0..state.recovering.len()).map(Action::Recovered));
        if state.round.as_ref().is_some_and(|round| !round.late) {
            actions.push(Action::RunOut);
        }
        if !state.up {
            actions.push(Action::StartGuard);
            return;
        }
        let may = state.token < scope.rounds;
        if !state.fails && may {
            actions.push(Action::FailPower);
            if state.round.is_none() {
                actions.push(Action::Rehearse);
            }
        }
        if state.fails {
            actions.push(Action::ReturnPower);
            actions.push(Action::GoBlind);
        }
        if state.ends < scope.ends {
            actions.push(Action::EndGuard);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let (mut state, broken) = (last.clone(), self.broken);
        match action {
            Action::Commit(nth) => state.writers[nth].commit(broken),
            Action::Connect(nth) => {
                state.connections += 1;
                state.writers[nth].linked = true;
                let (life, told, to_writer) = (state.writers[nth].life, None, Vec::new());
                let to_guard = vec![ToGuard::Writer];
                state.clients[nth] = Some(Client { life, registered: false, told, to_guard, to_writer });
            }
            Action::Follow(nth) => {
                let writer = &mut state.writers[nth];
                match state.clients[nth].as_mut()?.to_writer.remove(0) {
                    ToWriter::Budget(bound) => writer.bound = Some(bound),
                    ToWriter::Publish(token) => {
                        match broken {
                            Broken::BoundAfterEpoch => writer.durable = writer.commits,
                            _ => writer.bound = Some(0),
                        }
                        writer.publishing = Publishing::First(token);
                        if broken == Broken::AnsweredEarly {
                            state.clients[nth].as_mut()?.to_guard.push(ToGuard::Published(token));
                        }
                    }
                }
            }
            Action::Publish(nth) => {
                let writer = &mut state.writers[nth];
                match writer.publishing {
                    Publishing::No => return None,
                    Publishing::First(token) => {
                        match broken {
                            Broken::BoundAfterEpoch => writer.bound = Some(0),
                            _ => writer.durable = writer.commits,
                        }
                        writer.publishing = Publishing::Answer(token);
                    }
                    Publishing::Answer(token) => {
                        writer.publishing = Publishing::No;
                        let client = state.clients[nth].as_mut();
                        let client = client.filter(|client| client.life == writer.life && writer.linked);
                        if let (Some(client), true) = (client, broken != Broken::AnsweredEarly) {
                            client.to_guard.push(ToGuard::Published(token));
                        }
                    }
                }
            }
            Action::FindClosed(nth) => {
                state.writers[nth].linked = false;
                if broken != Broken::BoundKept {
                    state.writers[nth].bound = None;
                }
            }
            Action::Detach(nth, publishes) => {
                let writer = &mut state.writers[nth];
                if publishes {
                    writer.durable = writer.commits;
                }
                // The thread that answers the guard learns it last.
                let says = writer.durable == writer.commits || broken == Broken::FarewellUnpublished;
                let client = state.clients[nth].as_mut().filter(|client| client.life == writer.life);
                if let (Some(client), true, true) = (client, says, writer.linked) {
                    client.to_guard.push(ToGuard::Bye);
                }
                (writer.detached, writer.linked, writer.bound) = (true, false, None);
            }
            Action::Die(nth) => {
                state.deaths += 1;
                state.writers[nth].alive = false;
            }
            Action::Replace(nth) => state.writers[nth].begin_life(),
            Action::Take(nth) => state.take(nth, broken),
            Action::FindDead(nth) => state.departed(nth, broken),
            Action::Recovered(which) => {
                let (nth, life) = state.recovering.remove(which);
                let writer = &mut state.writers[nth];
                // The memory of a living process is locked.
                let done = writer.life != life || !writer.alive || writer.detached;
                if done && writer.life == life {
                    writer.durable = writer.commits;
                }
                state.end((nth, life), done, broken);
            }
            Action::RunOut => state.run_out(broken),
            Action::Expire(nth) => state.departed(nth, broken),
            Action::FailPower => {
                (state.fails, state.failing) = (true, true);
                state.begin_round(false, broken);
            }
            Action::ReturnPower => {
                (state.fails, state.failing) = (false, false);
                state.promised.clear();
                state.tell_budgets(true, broken);
            }
            Action::GoBlind => {
                if broken == Broken::BlindIsFine {
                    state.failing = false;
                    state.tell_budgets(true, broken);
                }
            }
            Action::Rehearse => state.begin_round(true, broken),
            Action::EndGuard => {
                state.ends += 1;
                (state.up, state.failing, state.round) = (false, false, None);
                state.clients.iter_mut().for_each(|client| *client = None);
                state.recovering.clear();
                state.promised.clear();
            }
            Action::StartGuard => {
                state.up = true;
                if state.fails {
                    state.failing = true;
                    state.begin_round(false, broken);
                }
            }
        }
        if state.wrong.is_none() {
            state.look();
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_LOSS, |_, state: &State| state.wrong.is_none()),
            Property::sometimes("a round says that all are durable", |_, state: &State| {
                state.promised.len() == state.writers.len()
            }),
            Property::sometimes("a writer that does not answer is killed", |_, state: &State| state.killed),
        ]
    }
}

const SMALL: Scope = Scope { writers: 1, commits: 2, deaths: 1, rounds: 2, ends: 1, connections: 2 };
const TWO: Scope = Scope { writers: 2, commits: 1, deaths: 1, rounds: 1, ends: 0, connections: 2 };

#[test]
fn a_guard_loses_nothing() {
    for scope in [SMALL, TWO] {
        holds(&format!("guard, {scope:?}"), Guards { scope, broken: Broken::Nothing });
    }
}

#[test]
#[ignore = "minutes: cargo xtask tools protocol"]
fn a_guard_loses_nothing_in_larger_scopes() {
    for scope in [Scope { rounds: 3, connections: 3, ..SMALL }, Scope { rounds: 2, connections: 3, ..TWO }] {
        holds(&format!("guard, {scope:?}"), Guards { scope, broken: Broken::Nothing });
    }
}

#[test]
fn each_broken_rule_of_a_guard_is_noticed() {
    for broken in [
        Broken::BoundKept,
        Broken::LateUnasked,
        Broken::QuietExpired,
        Broken::BudgetIgnored,
        Broken::BudgetWhileFailing,
        Broken::BoundAfterEpoch,
        Broken::AnsweredEarly,
        Broken::TokenIgnored,
        Broken::SilentLeftOut,
        Broken::KilledByNumber,
        Broken::RehearsalKills,
        Broken::GoneIsDurable,
        Broken::RecoveryUncounted,
        Broken::FarewellUnpublished,
        Broken::BlindIsFine,
    ] {
        fails(&format!("guard, {broken:?}"), Guards { scope: SMALL, broken });
    }
}
