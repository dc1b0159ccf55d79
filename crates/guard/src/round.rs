//! A round: all writers are asked to publish, and each gets an outcome.

use crate::report::{Outcome, RoundReport, WriterRound};
use crate::writer::Departed;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Debug)]
struct Open {
    pid: i32,
    pool: String,
}

#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) token: u64,
    cause: String,
    pub(crate) rehearsal: bool,
    begun: Instant,
    allowed: Duration,
    open: BTreeMap<u64, Open>,
    ended: Vec<WriterRound>,
    pub(crate) late: bool,
    pub(crate) askers: Vec<u64>,
}

impl Round {
    pub(crate) fn new(token: u64, cause: String, rehearsal: bool, allowed: Duration) -> Round {
        let begun = Instant::now();
        let (open, ended, askers) = (BTreeMap::new(), Vec::new(), Vec::new());
        Round { token, cause, rehearsal, begun, allowed, open, ended, late: false, askers }
    }

    pub(crate) fn ask(&mut self, client: u64, writer: &Departed) {
        let pool = writer.pool.to_string_lossy().into_owned();
        self.open.insert(client, Open { pid: writer.pid, pool });
    }

    pub(crate) fn end(&mut self, client: u64, outcome: Outcome, bytes: u64, why: Option<String>) {
        if let Some(Open { pid, pool }) = self.open.remove(&client) {
            let microseconds = micros(self.begun.elapsed());
            self.ended.push(WriterRound { pid, pool, outcome, bytes, microseconds, why });
        }
    }

    pub(crate) fn open(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.begun + self.allowed
    }

    pub(crate) fn report(&self) -> RoundReport {
        let durable =
            |writer: &WriterRound| matches!(writer.outcome, Outcome::Published | Outcome::Recovered);
        RoundReport {
            cause: self.cause.clone(),
            durable: self.is_over() && self.ended.iter().all(durable),
            microseconds: micros(self.begun.elapsed()),
            allowed: micros(self.allowed),
            writers: self.ended.clone(),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_07_a_round_is_durable_when_every_writer_is() {
        let writer = |pid| Departed { pool: "/p".into(), id: [0; 16], number: 1, pid, uid: 0, gid: 0 };
        for (outcome, durable) in [
            (Outcome::Published, true),
            (Outcome::Recovered, true),
            (Outcome::Failed, false),
            (Outcome::Lost, false),
            (Outcome::Silent, false),
        ] {
            let mut round = Round::new(1, "test".into(), false, Duration::from_secs(1));
            assert!(round.is_over());
            round.ask(1, &writer(10));
            round.ask(2, &writer(20));
            round.end(1, Outcome::Published, 64, None);
            round.end(1, Outcome::Lost, 0, None);
            assert!(!round.is_over() && !round.report().durable);
            assert_eq!(round.open(), [2]);
            round.end(2, outcome, 0, None);
            let report = round.report();
            assert_eq!((report.durable, report.writers.len()), (durable, 2), "{outcome:?}");
        }
    }
}
