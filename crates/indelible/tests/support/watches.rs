//! Mutants, and the tests that must notice them.

use indelible_store::{Mutant, with_mutant};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub type Test = (&'static str, fn());

pub fn all_are_noticed(watches: &[(Mutant, &[Test])]) {
    let mut missed = Vec::new();
    for (mutant, tests) in watches {
        for (name, test) in *tests {
            if with_mutant(*mutant, || catch_unwind(AssertUnwindSafe(test))).is_ok() {
                missed.push(format!("{mutant:?} ({}) by {name}", mutant.rule()));
            }
        }
    }
    assert_eq!(missed, [""; 0], "broken rules that go unnoticed");
}

/// Declares each mutant of a group with its tests, and two tests: that these notice it, and that
/// the group is complete.
#[macro_export]
macro_rules! watches {
    ($group:ident: $($mutant:ident: $($module:ident::$test:ident),+;)+) => {
        const WATCHES: &[(indelible_store::Mutant, &[$crate::watches::Test])] =
            &[$((indelible_store::Mutant::$mutant, &[$((stringify!($test), $crate::$module::$test)),+])),+];

        #[test]
        fn every_broken_rule_is_noticed() {
            $crate::watches::all_are_noticed(WATCHES);
        }

        #[test]
        fn every_rule_is_watched() {
            let watched: Vec<indelible_store::Mutant> = WATCHES.iter().map(|(mutant, _)| *mutant).collect();
            assert_eq!(watched, indelible_store::Mutant::$group);
        }
    };
}
