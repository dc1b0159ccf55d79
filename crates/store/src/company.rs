//! Threads that a group commit waits for before it begins to write, so that one durable write serves all of them: heaps with tickets, and transactions.
//!
//! A round that is closed as soon as somebody waits has half of the threads: the others were just woken by the end of the round
//! before. So the two halves take turns, with twice the writes. Those who waited when a cut ended are expected in the next round.
//! An expectation that fails costs a wait that is short beside a cut, and for some rounds nobody is expected then.

#[doc(hidden)]
pub use crate::sync::{since, wait_for};
use std::time::Duration;

/// Cuts that are shorter are not worth a wait: waking a thread takes as long.
const WORTH: Duration = Duration::from_micros(50);
/// Of the time that a cut takes, as what part the company may keep away before the round is closed without it.
const SHARE: u32 = 4;
/// Rounds without expectations after many failures: 2 to the power of this.
const DISTRUST: u32 = 6;

/// See the module.
#[derive(Debug, Default)]
pub struct Company {
    /// Threads that wait for any round.
    waiting: usize,
    /// Threads that wait for the round that tickets join.
    arrived: usize,
    /// Threads that waited when the last cut ended.
    expected: usize,
    /// Time of a cut, of late.
    pace: Duration,
    /// Expectations that failed in a row.
    failures: u32,
    /// Rounds to close without waiting for anybody.
    trustless: u32,
}

impl Company {
    /// `pace`: how long a cut takes, until it is known.
    #[must_use]
    pub fn with_pace(pace: Duration) -> Company {
        Company { pace, ..Company::default() }
    }

    /// Threads that wait for any round.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// A thread begins to wait. `joins`: for the round that tickets join.
    pub fn arrive(&mut self, joins: bool) {
        self.waiting += 1;
        self.arrived += usize::from(joins);
    }

    /// A thread waits no longer.
    pub fn leave(&mut self) {
        self.waiting -= 1;
    }

    /// Threads that wait for the round that tickets join.
    #[must_use]
    pub fn arrived(&self) -> usize {
        self.arrived
    }

    /// Whether nobody else is worth waiting for.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.arrived >= self.expected || self.trustless > 0 || self.pace < WORTH
    }

    /// How long to wait for the next of them.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.pace / SHARE
    }

    /// Those who are missing did not come in time.
    pub fn give_up(&mut self) {
        self.failures = (self.failures + 1).min(DISTRUST);
        self.trustless = 1 << self.failures;
    }

    /// The round is closed, and another one begins.
    pub fn close(&mut self) {
        if self.trustless > 0 {
            self.trustless -= 1;
        } else if self.expected > 1 {
            self.failures = 0;
        }
        self.arrived = 0;
    }

    /// A cut ended, after such a time, if it was measured: who waits now is expected in the next round, or waits for it.
    pub fn expect_again(&mut self, took: Option<Duration>) {
        self.expected = self.waiting;
        if let Some(took) = took {
            self.pace = (self.pace * 3 + took) / 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The company after a cut for which so many threads waited.
    fn after_a_cut(threads: usize, took: Duration) -> Company {
        let mut company = Company::default();
        (0..threads).for_each(|_| company.arrive(true));
        company.close();
        company.expect_again(Some(took));
        (0..threads).for_each(|_| company.leave());
        company
    }

    #[test]
    fn those_who_waited_when_a_cut_ended_are_expected() {
        let mut company = after_a_cut(3, WORTH * 8);
        for thread in 0..3 {
            assert!(!company.is_complete(), "{thread} of 3");
            company.arrive(true);
        }
        assert!(company.is_complete());
    }

    #[test]
    fn nobody_is_expected_where_cuts_are_short_or_one_thread_commits() {
        let mut company = after_a_cut(3, WORTH / 2);
        company.arrive(true);
        assert!(company.is_complete());
        let mut company = after_a_cut(1, WORTH * 8);
        company.arrive(true);
        assert!(company.is_complete());
    }

    #[test]
    fn failed_expectations_become_rare_and_a_good_one_brings_trust_back() {
        let mut company = after_a_cut(2, WORTH * 8);
        let mut waits = 0;
        for _ in 0..200 {
            company.arrive(true);
            if !company.is_complete() {
                waits += 1;
                company.give_up();
            }
            company.close();
            // The other thread waits elsewhere in this moment, and does not come.
            company.expected = 2;
            company.leave();
        }
        assert!(waits < 10, "{waits} waits for one who never comes");
        company.trustless = 0;
        company.arrive(true);
        company.arrive(true);
        assert!(company.is_complete());
        company.close();
        assert_eq!(company.failures, 0);
    }
}
