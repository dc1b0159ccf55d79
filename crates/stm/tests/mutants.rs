//! At least two detectors notice each broken rule.

use crate::detectors::{bank, equal_words, half_stored, numbers, skew, torn_view};
use crate::support::Rule;
use crate::{ecc, history, in_place};
use indelible_stm::Mutant;

type Detector = (&'static str, fn(Rule) -> Result<(), String>);

/// Those that depend on scheduling have many tries.
const DETECTORS: &[Detector] = &[
    ("history", |rule| (0..300).try_for_each(|seed| history::check(seed, 4, 60, 16, rule))),
    ("bank", |rule| (0..100).try_for_each(|_| bank(4, 50, rule))),
    ("equal words", |rule| (0..100).try_for_each(|_| equal_words(4, 200, rule))),
    ("skew", skew),
    ("torn view", torn_view),
    ("numbers", numbers),
    ("half stored", half_stored),
    ("undone", in_place::undone),
    ("doomed", in_place::doomed),
    ("ambiguous words", ecc::ambiguous_words),
    ("random damage", ecc::random_damage),
];

#[test]
fn two_detectors_notice_each_broken_rule() {
    for mutant in Mutant::all() {
        let notices = |detector: &&Detector| (detector.1)(Some(mutant)).is_err();
        let names: Vec<_> = DETECTORS.iter().filter(notices).map(|(name, _)| *name).collect();
        println!("{mutant:?}: {names:?}");
        assert!(names.len() >= 2, "{mutant:?} is noticed by {names:?} alone");
        let certain = match mutant {
            Mutant::Unvalidated => "skew",
            Mutant::ReleasedFirst => "half stored",
            Mutant::ClockStopped => "numbers",
            Mutant::DoomedGoesOn => "torn view",
            Mutant::FirstCandidate => "ambiguous words",
            Mutant::UndoneUnnoticed => "undone",
        };
        assert!(
            names.contains(&certain),
            "{mutant:?} is not noticed by {certain}, which sees it for certain"
        );
    }
}
