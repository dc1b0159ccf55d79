//! Transactions that may be found, and those that must be.

use super::found::{Found, numbers};
use super::transaction::{Fate, Line, MOST, Set, Transaction};
use super::{OBJECTS, TRANSACTIONAL};
use indelible_testing::SimMedium;
use indelible_testing::pool::Snapshot;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) must: Set,
    pub(super) may: Set,
}

pub(super) struct Ledger {
    pub(super) transactions: Vec<Transaction>,
    durable: Set,
    pub(super) moments: Vec<Moment>,
    snapshots: BTreeMap<String, (usize, Set)>,
}

impl Default for Ledger {
    fn default() -> Self {
        let line = Line { life: 0, apart: false };
        let none =
            Transaction { objects: 0, wide: false, line, thread: 0, fate: Fate::Lost, returned: false };
        Ledger { transactions: vec![none], durable: 0, moments: Vec::new(), snapshots: BTreeMap::new() }
    }
}

type Verdict = Result<(), String>;

impl Ledger {
    fn which(&self, has: impl Fn(usize, &Transaction) -> bool) -> Set {
        let all = self.transactions.iter().enumerate().skip(1);
        all.filter(|(number, one)| has(*number, one)).fold(0, |set, (number, _)| set | 1 << number)
    }

    pub(super) fn now(&self) -> Moment {
        let may = self.which(|_, one| one.fate != Fate::Lost);
        Moment { must: self.durable & may, may }
    }

    pub(super) fn promise(&mut self, medium: &SimMedium) {
        self.moments.push(self.now());
        medium.mark(self.moments.len() as u64 - 1);
    }

    pub(super) fn begin(&mut self, objects: &[usize], wide: bool, line: Line, thread: u32) -> Option<usize> {
        let number = self.transactions.len();
        if number > MOST {
            return None;
        }
        let objects = objects.iter().fold(0, |set, object| set | 1 << object);
        let fate = Fate::Open;
        self.transactions.push(Transaction { objects, wide, line, thread, fate, returned: false });
        Some(number)
    }

    pub(super) fn returned(&mut self, number: usize) {
        let one = &mut self.transactions[number];
        (one.fate, one.returned) = (Fate::Done, true);
        if one.has(TRANSACTIONAL) {
            match one.line.apart {
                true => self.durable |= 1 << number,
                false => {
                    let line = one.line;
                    self.all_durable(line);
                }
            }
        }
    }

    pub(super) fn all_durable(&mut self, line: Line) {
        self.durable |= self.which(|_, one| one.line == line && one.fate == Fate::Done);
    }

    pub(super) fn object_durable(&mut self, object: usize) {
        self.durable |= self.which(|_, one| one.has(object) && one.fate == Fate::Done);
    }

    pub(super) fn thread_durable(&mut self, line: Line, thread: u32) {
        let own = self.which(|_, one| one.line == line && one.thread == thread && one.fate == Fate::Done);
        let mut objects = 0;
        for number in (1..self.transactions.len()).rev() {
            let one = &self.transactions[number];
            if own >> number & 1 == 1 || one.objects & objects != 0 && one.fate == Fate::Done {
                objects |= one.objects;
                self.durable |= 1 << number;
            }
        }
    }

    pub(super) fn lives_durable(&mut self, is_dead: impl Fn(u32) -> bool) {
        self.durable |= self.which(|_, one| is_dead(one.line.life) && one.fate == Fate::Done);
    }

    pub(super) fn look(&mut self, object: usize, found: &Found) -> Verdict {
        for number in 1..self.transactions.len() {
            let there = found.there >> number & 1 == 1;
            let one = &mut self.transactions[number];
            if !one.has(object) {
                continue;
            }
            match (one.fate, there) {
                (Fate::Open, _) => one.fate = if there { Fate::Done } else { Fate::Lost },
                (Fate::Done, false) => {
                    return Err(format!(
                        "transaction {number} of {} is not in {}",
                        names(one.objects),
                        OBJECTS[object]
                    ));
                }
                (Fate::Lost, true) => {
                    return Err(format!(
                        "transaction {number} of {} is in {}, and was lost",
                        names(one.objects),
                        OBJECTS[object]
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn cut(&mut self, found: &[Option<Found>]) {
        let there = found.iter().flatten().fold(0, |all, found| all | found.there);
        for (number, one) in self.transactions.iter_mut().enumerate().skip(1) {
            if one.fate != Fate::Lost {
                one.fate = if there >> number & 1 == 1 { Fate::Done } else { Fate::Lost };
            }
        }
        self.durable |= there;
        self.moments.clear();
        self.snapshots.clear();
    }

    pub(super) fn kept(&mut self, snapshot: String, object: usize, must: Set) {
        self.snapshots.insert(snapshot, (object, must));
    }

    pub(super) fn judge_snapshot(&self, name: &str, bytes: &[u8]) -> Verdict {
        let Some((object, must)) = self.snapshots.get(name) else { return Ok(()) };
        let found = Found::in_bytes(*object, &self.transactions, bytes)?;
        let own = self.which(|_, one| one.has(*object));
        match must & own & !found.there {
            0 => Ok(()),
            lost => Err(format!("{name} of {} lacks {}", OBJECTS[*object], numbers(lost))),
        }
    }

    pub(super) fn found_in(&self, pool: &Snapshot) -> Result<Vec<Option<Found>>, String> {
        let look = |(object, name): (usize, &&str)| {
            let (_, _, bytes) = pool.get(*name).ok_or_else(|| format!("{name} is missing"))?;
            Found::in_bytes(object, &self.transactions, bytes).map(Some)
        };
        OBJECTS.iter().enumerate().map(look).collect()
    }

    /// Whether a power cut, or a copy, may leave these. An unread object matches any state.
    pub(super) fn judge(&self, moment: &Moment, found: &[Option<Found>]) -> Verdict {
        let mut there = 0;
        for (number, one) in self.transactions.iter().enumerate().skip(1) {
            let seen = found.iter().enumerate().filter(|(object, _)| one.has(*object));
            let seen = seen.filter_map(|(object, found)| Some((object, (*found)?)));
            let mut has = 0;
            let mut lacks = 0;
            for (object, found) in seen {
                let side = if found.there >> number & 1 == 1 { &mut has } else { &mut lacks };
                *side |= 1 << object;
            }
            if has != 0 && lacks != 0 {
                return Err(format!(
                    "transaction {number} is torn: it is in {}, and not in {}",
                    names(has),
                    names(lacks)
                ));
            }
            let (must, may) = (moment.must >> number & 1 == 1, moment.may >> number & 1 == 1);
            if must && lacks != 0 {
                return Err(format!(
                    "transaction {number} of {} is lost, which was acknowledged as durable",
                    names(one.objects)
                ));
            }
            if !may && has != 0 {
                return Err(format!("transaction {number} is there, which never happened or was lost"));
            }
            there |= Set::from(has != 0) << number;
            if has == 0 || found.iter().any(Option::is_none) {
                continue;
            }
            let is_earlier =
                |other, earlier: &Transaction| other < number && earlier.line == one.line && earlier.returned;
            let missing = self.which(is_earlier) & moment.may & !there;
            if missing != 0 {
                return Err(format!("transaction {number} is there without {} before it", numbers(missing)));
            }
        }
        Ok(())
    }
}

fn names(objects: Set) -> String {
    let all: Vec<_> = OBJECTS.iter().enumerate().filter(|(object, _)| objects >> object & 1 == 1).collect();
    all.iter().map(|(_, name)| **name).collect::<Vec<_>>().join(", ")
}
