//! Threads that a group commit waits for, so that one durable write serves heaps with tickets and
//! transactions.
//!
//! A round that closes at its first waiter serves half of the threads: each round expects the last
//! cut's waiters, unless that failed repeatedly.

#[doc(hidden)]
pub use crate::sync::{since, wait_for};
use std::time::Duration;

/// Waking a thread takes as long.
const WORTH: Duration = Duration::from_micros(50);
/// A wait is at most a cut's time divided by this.
const SHARE: u32 = 4;
/// Log2 of the most rounds without expectations.
const DISTRUST: u32 = 6;

/// State of a group commit's rounds.
#[derive(Debug, Default)]
pub struct Company {
    waiting: usize,
    arrived: usize,
    expected: usize,
    pace: Duration,
    failures: u32,
    trustless: u32,
    closed: u64,
    watched: Option<u64>,
}

/// One thread's wait for a round's company, for all its waiters.
#[derive(Debug)]
#[must_use = "the others wait for what comes of it"]
pub struct Watch {
    round: u64,
    arrived: usize,
    /// How long to wait for the next thread.
    pub patience: Duration,
}

impl Company {
    /// `pace`: assumed duration of a cut until one is measured.
    #[must_use]
    pub fn with_pace(pace: Duration) -> Company {
        Company { pace, ..Company::default() }
    }

    /// Threads that wait for any round.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// A thread begins to wait; `joins`: in the round that tickets join.
    pub fn arrive(&mut self, joins: bool) {
        self.waiting += 1;
        self.arrived += usize::from(joins);
    }

    /// A thread stops waiting.
    pub fn leave(&mut self) {
        self.waiting -= 1;
    }

    /// Whether no missing thread is worth a wait.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.arrived >= self.expected || self.trustless > 0 || self.pace < WORTH
    }

    /// Begins to watch for the round that tickets join. `None`: another thread watches, and wakes
    /// the rest.
    pub fn watch(&mut self) -> Option<Watch> {
        if self.watched == Some(self.closed) {
            return None;
        }
        self.watched = Some(self.closed);
        Some(Watch { round: self.closed, arrived: self.arrived, patience: self.pace / SHARE })
    }

    /// Ends a watch. If no thread came meanwhile, the round stops waiting.
    pub fn end_watch(&mut self, watch: Watch, in_time: bool) {
        if self.watched == Some(watch.round) {
            self.watched = None;
        }
        if !in_time && self.closed == watch.round && self.arrived == watch.arrived {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.failures = (self.failures + 1).min(DISTRUST);
        self.trustless = 1 << self.failures;
    }

    /// Closes the round.
    pub fn close(&mut self) {
        if self.trustless > 0 {
            self.trustless -= 1;
        } else if self.expected > 1 {
            self.failures = 0;
        }
        self.arrived = 0;
        self.closed += 1;
    }

    /// Records the end of a cut; expects the present waiters again.
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
    fn nobody_relies_on_a_watch_for_an_earlier_round() {
        let mut company = after_a_cut(3, WORTH * 8);
        company.arrive(true);
        let late = company.watch().unwrap();
        assert!(company.watch().is_none(), "one thread looks at the clock for all");
        company.close();
        let next = company.watch().expect("the thread of the round before counts for nothing");
        company.end_watch(late, false);
        assert!(company.watch().is_none(), "the watch of this round goes on");
        assert_eq!(company.trustless, 0, "a late thread says nothing of this round");
        company.end_watch(next, false);
        assert!(company.trustless > 0 && company.is_complete());
    }

    #[test]
    fn company_that_keeps_coming_is_waited_for() {
        let mut company = after_a_cut(3, WORTH * 8);
        company.arrive(true);
        let watch = company.watch().unwrap();
        company.arrive(true);
        company.end_watch(watch, false);
        assert!(!company.is_complete());
        let watch = company.watch().expect("the watch ended");
        company.end_watch(watch, true);
        assert!(!company.is_complete(), "it was woken before the time was over");
    }

    #[test]
    fn failed_expectations_become_rare_and_a_good_one_brings_trust_back() {
        let mut company = after_a_cut(2, WORTH * 8);
        let mut waits = 0;
        for _ in 0..200 {
            company.arrive(true);
            if !company.is_complete() {
                waits += 1;
                let watch = company.watch().unwrap();
                company.end_watch(watch, false);
            }
            company.close();
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
