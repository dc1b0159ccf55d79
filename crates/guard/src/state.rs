//! The guard's clients, power and current round: everything that events change.

use crate::budget::Budget;
use crate::condition::Condition;
use crate::connection::{Client, Received};
use crate::events::Sender;
use crate::kernel::Peer;
use crate::note::Note;
use crate::places::{self, Room, is_trusted};
use crate::protocol::{self, Request};
use crate::recoveries::{Recover, Recoveries};
use crate::report::{DetectorReport, Outcome, RoundReport, Status};
use crate::round::Round;
use crate::writer::{Departed, Writer};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Eye {
    report: DetectorReport,
    latency: Duration,
    failing: bool,
}

pub(crate) struct State {
    budget: Budget,
    note: Box<dyn FnMut(&Note) + Send>,
    detectors: Vec<Eye>,
    clients: BTreeMap<u64, Client>,
    next: u64,
    pub(crate) recoveries: Recoveries,
    in_round: BTreeMap<u64, u64>,
    recovered: u64,
    lost: u64,
    round: Option<Round>,
    token: u64,
    last: Option<RoundReport>,
}

impl State {
    pub(crate) fn new(
        budget: Budget,
        recover: Recover,
        sender: Sender,
        note: Box<dyn FnMut(&Note) + Send>,
    ) -> State {
        State {
            budget,
            note,
            detectors: Vec::new(),
            clients: BTreeMap::new(),
            next: 0,
            recoveries: Recoveries::new(recover, sender),
            in_round: BTreeMap::new(),
            recovered: 0,
            lost: 0,
            round: None,
            token: 0,
            last: None,
        }
    }

    pub(crate) fn add_detector(&mut self, name: String, latency: Duration) {
        let latency_ms = u64::try_from(latency.as_millis()).unwrap_or(u64::MAX);
        let report = DetectorReport { name, condition: "fine".into(), why: None, latency_ms };
        self.detectors.push(Eye { report, latency, failing: false });
    }

    pub(crate) fn add(&mut self, client: Client) {
        self.next += 1;
        self.clients.insert(self.next, client);
    }

    pub(crate) fn make_room(&mut self, user: u32) -> bool {
        match places::room(user, self.clients.values().map(|client| client.peer.uid)) {
            Room::Free => true,
            Room::None => false,
            Room::Of(most) => {
                let of_most = self.clients().filter(|(_, client)| client.peer.uid == most);
                let leaves = of_most.max_by_key(|(id, client)| (client.writer.is_none(), *id));
                let leaves = leaves.map(|(id, _)| id);
                leaves.into_iter().for_each(|id| self.send_away(id));
                true
            }
        }
    }

    /// A writer goes on without a guard, and reconnects.
    fn send_away(&mut self, id: u64) {
        let Some(client) = self.clients.remove(&id) else { return };
        let why = "its user has the most connections, and others need room";
        (self.note)(&Note::Refused { pid: client.peer.pid, why: why.into() });
        if let Some(round) = &mut self.round {
            round.end(id, Outcome::Failed, 0, Some(why.into()));
        }
        self.end_round();
        self.tell_budgets(false);
    }

    pub(crate) fn clients(&self) -> impl Iterator<Item = (u64, &Client)> {
        self.clients.iter().map(|(id, client)| (*id, client))
    }

    fn is_failing(&self) -> bool {
        self.detectors.iter().any(|detector| detector.failing)
    }

    fn latency(&self) -> Duration {
        self.detectors.iter().map(|detector| detector.latency).max().unwrap_or_default()
    }

    pub(crate) fn condition(&mut self, nth: usize, condition: Condition) {
        let was = self.is_failing();
        let Some(detector) = self.detectors.get_mut(nth) else { return };
        let (word, why) = match condition {
            Condition::Fine => ("fine", None),
            Condition::Failing => ("failing", None),
            Condition::Blind(why) => ("blind", Some(why)),
        };
        // Rule G10 of docs/protocol.md.
        match word {
            "failing" => detector.failing = true,
            "fine" => detector.failing = false,
            _ => {}
        }
        if detector.report.condition != word || detector.report.why != why {
            detector.report = DetectorReport { condition: word.into(), why, ..detector.report.clone() };
            let report = detector.report.clone();
            (self.note)(&Note::Detector(report));
        }
        let (name, latency) = (self.detectors[nth].report.name.clone(), self.detectors[nth].latency);
        match (was, self.is_failing()) {
            (false, true) => self.begin_round(name, false, self.budget.time(latency)),
            (true, false) => self.tell_budgets(true),
            _ => {}
        }
    }

    pub(crate) fn serve(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let sent = client.connection.flush();
        let (lines, ended) = match client.connection.receive() {
            Received::Lines(lines) => (lines, !sent),
            Received::Last(lines) => (lines, true),
            Received::Garbage => return self.refuse(id, "it does not keep to the protocol"),
        };
        for line in lines {
            match protocol::parse(&line) {
                Some(request) => self.follow(id, request),
                None => return self.refuse(id, "it does not keep to the protocol"),
            }
        }
        if ended {
            return self.departed(id);
        }
        self.tell_budgets(false);
    }

    fn refuse(&mut self, id: u64, why: &str) {
        if let Some(client) = self.clients.get(&id) {
            (self.note)(&Note::Refused { pid: client.peer.pid, why: why.into() });
        }
        self.departed(id);
    }

    fn follow(&mut self, id: u64, request: Request) {
        let round = self.round.as_mut();
        match request {
            Request::Writer { pool, id: pool_id, number } => self.register(id, pool, pool_id, number),
            Request::Measured { bytes, took } => {
                if let Some(writer) = self.clients.get_mut(&id).and_then(|client| client.writer.as_mut()) {
                    writer.rate.note(bytes, took);
                }
            }
            Request::Published { token, bytes } => {
                // Rule G5 of docs/protocol.md.
                if let Some(round) = round.filter(|round| round.token == token) {
                    round.end(id, Outcome::Published, bytes, None);
                }
                self.end_round();
            }
            Request::Failed { token, why } => {
                if let Some(round) = round.filter(|round| round.token == token) {
                    round.end(id, Outcome::Failed, 0, Some(why));
                }
                self.end_round();
            }
            Request::Bye => {
                if let Some(Client { writer: Some(writer), .. }) = self.clients.remove(&id) {
                    let Departed { pid, pool, .. } = writer.departed;
                    (self.note)(&Note::Left { pid, pool: pool.to_string_lossy().into_owned() });
                }
                if let Some(round) = round {
                    round.end(id, Outcome::Published, 0, None);
                }
                self.end_round();
            }
            Request::Status | Request::Rehearse => self.answer(id, &request),
        }
    }

    fn register(&mut self, id: u64, pool: PathBuf, pool_id: [u8; 16], number: u64) {
        let failing = self.is_failing();
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.writer.is_some() {
            return self.refuse(id, "it is registered already");
        }
        let Peer { pid, uid, gid } = client.peer;
        // Writers accept only guards of root and of their own user.
        if !is_trusted(uid) && !rustix::process::geteuid().is_root() {
            return self.refuse(id, "it is another user's, and this guard is not root's");
        }
        let departed = Departed { pool, id: pool_id, number, pid, uid, gid };
        match std::mem::replace(&mut client.process, Ok(None)) {
            Ok(Some(process)) => client.writer = Some(Writer::new(departed.clone(), process)),
            Ok(None) => {
                self.clients.remove(&id);
                return self.recover(departed, None);
            }
            Err(error) => return self.refuse(id, &error.to_string()),
        }
        client.until = None;
        let (pid, pool) = (departed.pid, departed.pool.to_string_lossy().into_owned());
        (self.note)(&Note::Registered { pid, pool });
        // Rule G2 of docs/protocol.md.
        if failing {
            self.send(id, &protocol::publish(self.token));
        }
    }

    fn answer(&mut self, id: u64, request: &Request) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.until = None;
        if !is_trusted(client.peer.uid) {
            return self.say(id, "denied\n");
        }
        if *request == Request::Status {
            let status = self.status();
            let text = serde_json::to_string(&status).unwrap_or_default();
            return self.say(id, &format!("{text}\n"));
        }
        if self.is_failing() {
            return self.say(id, "the power fails now\n");
        }
        if self.round.is_none() {
            let allowed = self.budget.time(self.latency());
            self.begin_round("rehearsal".into(), true, allowed);
        }
        match self.round.as_mut() {
            Some(round) => round.askers.push(id),
            // No writer is registered: the round is over.
            None => self.say_last(id),
        }
    }

    fn say_last(&mut self, id: u64) {
        let text = serde_json::to_string(&self.last).unwrap_or_default();
        self.say(id, &format!("{text}\n"));
    }

    fn say(&mut self, id: u64, text: &str) {
        if let Some(mut client) = self.clients.remove(&id) {
            let _ = client.connection.send(text);
        }
    }

    fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            failing: self.is_failing(),
            detectors: self.detectors.iter().map(|detector| detector.report.clone()).collect(),
            writers: self
                .clients
                .values()
                .filter_map(|client| Some(client.writer.as_ref()?.report()))
                .collect(),
            recovered: self.recovered,
            lost: self.lost,
            last: self.last.clone(),
        }
    }

    /// A writer that does not read counts as gone.
    fn send(&mut self, id: u64, text: &str) {
        if let Some(client) = self.clients.get_mut(&id)
            && !client.connection.send(text)
        {
            self.departed(id);
        }
    }

    /// If much changed, or to `all`.
    fn tell_budgets(&mut self, all: bool) {
        // Rule G3 of docs/protocol.md.
        if self.is_failing() || self.round.is_some() {
            return;
        }
        let (latency, mut lines) = (self.latency(), Vec::new());
        // Equal shares of users, and of each user's writers: a writer costs only its own user.
        let mut of_users = BTreeMap::<u32, usize>::new();
        for client in self.clients.values().filter(|client| client.writer.is_some()) {
            *of_users.entry(client.peer.uid).or_default() += 1;
        }
        for (id, client) in &mut self.clients {
            let Some(writer) = &mut client.writer else { continue };
            let parts = of_users.len() * of_users[&client.peer.uid];
            let share = self.budget.share(latency, parts, &writer.rate);
            if all || writer.told.is_none_or(|told| told.abs_diff(share) > told / 8) {
                writer.told = Some(share);
                lines.push((*id, protocol::budget(share)));
            }
        }
        for (id, line) in lines {
            self.send(id, &line);
        }
    }

    fn begin_round(&mut self, cause: String, rehearsal: bool, allowed: Duration) {
        self.token += 1;
        let mut round = Round::new(self.token, cause, rehearsal, allowed);
        // A failure ends a rehearsal; its askers see the failure's round.
        round.askers = self.round.take().map_or_else(Vec::new, |before| before.askers);
        self.in_round.clear();
        // Rule G8 of docs/protocol.md: the pool lacks the commits being recovered.
        for (number, departed) in self.recoveries.all() {
            self.next += 1;
            round.ask(self.next, departed);
            self.in_round.insert(number, self.next);
        }
        let mut asked = Vec::new();
        for (id, client) in &self.clients {
            if let Some(writer) = &client.writer {
                round.ask(*id, &writer.departed);
                asked.push(*id);
            }
        }
        let line = protocol::publish(self.token);
        self.round = Some(round);
        for id in asked {
            self.send(id, &line);
        }
        self.end_round();
    }

    fn end_round(&mut self) {
        let Some(round) = self.round.take_if(|round| round.is_over()) else { return };
        let report = round.report();
        (self.note)(&Note::Round(report.clone()));
        self.last = Some(report);
        for id in round.askers {
            self.say_last(id);
        }
        self.tell_budgets(true);
    }

    pub(crate) fn departed(&mut self, id: u64) {
        let Some(client) = self.clients.remove(&id) else { return };
        // Rule G7 of docs/protocol.md.
        if let Some(writer) = client.writer {
            let of_round = self.round.as_ref().is_some_and(|round| round.open().contains(&id));
            self.recover(writer.departed, of_round.then_some(id));
            self.tell_budgets(false);
        }
    }

    fn recover(&mut self, departed: Departed, of_round: Option<u64>) {
        match (self.recoveries.begin(departed.clone(), of_round.is_some()), of_round) {
            (Some(number), Some(id)) => drop(self.in_round.insert(number, id)),
            (Some(_), None) => {}
            (None, _) => self.ended(&departed, of_round, Err("too many recoveries wait".into())),
        }
    }

    pub(crate) fn recovered(&mut self, number: u64, done: Result<(), String>) {
        let of_round = self.in_round.remove(&number);
        if let Some(departed) = self.recoveries.end(number) {
            self.ended(&departed, of_round, done);
        }
    }

    fn ended(&mut self, departed: &Departed, of_round: Option<u64>, done: Result<(), String>) {
        let (pid, pool) = (departed.pid, departed.pool.to_string_lossy().into_owned());
        let (outcome, why) = match done {
            Ok(()) => {
                self.recovered += 1;
                (self.note)(&Note::Recovered { pid, pool });
                (Outcome::Recovered, None)
            }
            Err(why) => {
                self.lost += 1;
                (self.note)(&Note::Lost { pid, pool, why: why.clone() });
                (Outcome::Lost, Some(why))
            }
        };
        if let (Some(round), Some(id)) = (&mut self.round, of_round) {
            round.end(id, outcome, 0, why);
            self.end_round();
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let round = self.round.as_ref().filter(|round| !round.late).map(Round::deadline);
        self.clients.values().filter_map(|client| client.until).chain(round).min()
    }

    pub(crate) fn pass_time(&mut self, now: Instant) {
        let silent: Vec<u64> = self
            .clients()
            .filter(|(_, client)| client.until.is_some_and(|until| until <= now))
            .map(|(id, _)| id)
            .collect();
        silent.into_iter().for_each(|id| self.refuse(id, "it says nothing"));
        let Some(round) = self.round.as_mut().filter(|round| !round.late && round.deadline() <= now) else {
            return;
        };
        round.late = true;
        for id in round.open() {
            match self.clients.get(&id).and_then(|client| client.writer.as_ref()) {
                // Rule G6 of docs/protocol.md.
                _ if round.rehearsal => {
                    round.end(id, Outcome::Silent, 0, Some("it did not answer in time".into()))
                }
                // Its death starts its memory's recovery, which gives it an outcome.
                Some(writer) => writer.process.kill(),
                None => {}
            }
        }
        self.end_round();
    }
}
