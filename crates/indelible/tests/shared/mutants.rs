//! With the feature `mutants`, each rule of shared objects is broken once, and the tests that are named beside it fail.
#![cfg(feature = "__mutants")]

use crate::{deaths, log, queue};
use indelible_store::{Mutant, with_mutant};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Test = (&'static str, fn());

macro_rules! watches {
    ($($mutant:ident: $($module:ident::$test:ident),+;)+) => {
        /// Each mutant, and the tests that have to notice it.
        const WATCHES: &[(Mutant, &[Test])] =
            &[$((Mutant::$mutant, &[$((stringify!($test), $module::$test)),+])),+];
    };
}

watches! {
    DeadProducerKept: deaths::s2_27_a_message_whose_producer_died_in_it_is_left_out,
        deaths::a_queue_that_dead_producers_filled_is_free_again;
    WakeLost: queue::a_message_wakes_the_consumer,
        queue::a_message_that_is_taken_wakes_producers;
    AcknowledgedEarly: log::a_psync_that_fails_acknowledges_nothing,
        log::a_psync_that_meets_a_failing_medium_acknowledges_nothing;
}

#[test]
fn every_broken_rule_is_noticed() {
    let mut missed = Vec::new();
    for (mutant, tests) in WATCHES {
        for (name, test) in *tests {
            if with_mutant(*mutant, || catch_unwind(AssertUnwindSafe(test))).is_ok() {
                missed.push(format!("{mutant:?} ({}) by {name}", mutant.rule()));
            }
        }
    }
    assert_eq!(missed, [""; 0], "broken rules that go unnoticed");
}

#[test]
fn every_rule_is_watched() {
    let watched: Vec<Mutant> = WATCHES.iter().map(|(mutant, _)| *mutant).collect();
    assert_eq!(watched, Mutant::SHARED);
}
