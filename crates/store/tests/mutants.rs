//! Scenarios for single rules of the protocol pass; with the feature `__mutants`, each notices its
//! broken rules.

use indelible_testing::rules::{RULE_TESTS, RuleTest};

fn the(name: &str) -> RuleTest {
    *RULE_TESTS.iter().find(|test| test.name == name).expect("it is listed")
}

fn check(name: &str) {
    let test = the(name);
    (test.run)().unwrap_or_else(|error| panic!("nothing is broken: {error}"));
    #[cfg(feature = "__mutants")]
    for mutant in test.watches {
        let broken = || std::panic::catch_unwind(test.run);
        match indelible_store::with_mutant(*mutant, broken) {
            Ok(Ok(())) => panic!("{mutant:?} goes unnoticed"),
            Ok(Err(error)) => println!("{mutant:?}: {}", error.lines().next().unwrap_or_default()),
            Err(_) => println!("{mutant:?}: a check panicked"),
        }
    }
}

indelible_testing::test_every_rule!(check);
