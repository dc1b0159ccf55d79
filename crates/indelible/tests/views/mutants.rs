//! With the feature `mutants`, each rule of views is broken once, and the tests that are named beside it fail.
#![cfg(feature = "mutants")]

use crate::{adopting, touching};
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
    SlotRightsIgnored: touching::s2_15_a_slot_has_the_rights_that_it_asks_for,
        adopting::s2_06_changed_rights_and_objects_are_adopted;
    ViewAdoptedInUse: adopting::s2_07_a_fault_takes_nothing_away,
        adopting::s2_07_an_emptied_slot_goes_on_until_it_is_adopted;
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
    assert_eq!(watched, Mutant::VIEWS);
}
