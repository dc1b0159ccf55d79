//! Scenarios made for single rules of objects on demand: the short programs of [`Demand`], each
//! group for one loss, and sweeps beside an attach.

use super::common::{CONFIG, SEED, Verdict};
use crate::crashes::Demand;
use indelible_store::Mutant;
use indelible_testing::rules::RuleTest;
use indelible_testing::scenario::media;

/// Every so many pairs of switches: the loss takes one turn of the attach, and 29 of the sweep.
const EACH: usize = 29;

pub(super) const DEMAND_TESTS: &[RuleTest] = &[
    RuleTest {
        name: "tx_sync waits wherever code can run",
        watches: &[
            Mutant::UnknownTakenForNone,
            Mutant::SyncNotAwaited,
            Mutant::EpochUnmarked,
            Mutant::StrongerClassIgnored,
        ],
        run: || Demand::judge_short("tx_sync", CONFIG, SEED),
    },
    RuleTest {
        name: "an object that leaves is published with those it shares commits with",
        watches: &[Mutant::LeftUnpublished],
        run: || Demand::judge_short("left in a transaction", CONFIG, SEED),
    },
    RuleTest {
        name: "a copy leaves commits in memory to the original",
        watches: &[Mutant::OriginIgnored],
        run: || Demand::judge_short("copied", CONFIG, SEED),
    },
    RuleTest {
        name: "an attach asks for what a dead process committed",
        watches: &[Mutant::MemoryForgotten],
        run: || Demand::judge_short("dead", CONFIG, SEED),
    },
    RuleTest {
        name: "a sweep beside an attach",
        watches: &[Mutant::JudgedUnlocked],
        run: || Demand::judge_sweeps(&[0], EACH, CONFIG, SEED),
    },
    RuleTest {
        name: "a sweep beside an attach of two objects",
        watches: &[Mutant::JudgedUnlocked],
        run: || Demand::judge_sweeps(&[0, 1], EACH, CONFIG, SEED),
    },
];

pub(super) fn watch(mutant: Mutant) -> bool {
    DEMAND_TESTS.iter().any(|test| test.watches.contains(&mutant))
}

pub(super) fn random() -> Verdict {
    let kinds = media();
    (0..24).try_for_each(|nth| Demand::new(kinds[nth as usize % kinds.len()], SEED, nth).judge().map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use indelible_store::with_mutant;

    #[test]
    fn programs_of_objects_on_demand_notice_broken_rules() {
        // Sweeps take a minute: a complete run has them, and the campaign of mutants.
        let is_complete = indelible_testing::sparse(2) == 1;
        for test in DEMAND_TESTS.iter().filter(|test| is_complete || !test.name.starts_with("a sweep")) {
            (test.run)().unwrap_or_else(|cause| panic!("{}: {cause}", test.name));
            for mutant in test.watches {
                let noticed = with_mutant(*mutant, || (test.run)().is_err());
                assert!(noticed, "{mutant:?} goes unnoticed: {}", test.name);
            }
        }
    }
}
