//! The models, in four parallel tests, as each may take seconds. `INDELIBLE_MODEL=text` selects by
//! name.

use indelible_models::MODELS;
use std::time::Instant;

const TESTS: usize = 4;

/// Runs each `TESTS`th model, from number `first`.
fn every_order_keeps_the_promises(first: usize) {
    let chosen = std::env::var("INDELIBLE_MODEL").unwrap_or_default();
    let of_all = MODELS.iter().filter(|model| model.name.contains(&chosen)).count();
    assert!(of_all > 0, "no model has {chosen} in its name");
    for model in MODELS.iter().skip(first).step_by(TESTS).filter(|model| model.name.contains(&chosen)) {
        let begin = Instant::now();
        let orders = model.run();
        println!("{orders:>8} orders in {:>5.1} s: {}", begin.elapsed().as_secs_f64(), model.name);
        assert!(orders > 1, "{}: the threads never met", model.name);
    }
}

#[test]
fn every_order_keeps_the_promises_of_the_first_models() {
    every_order_keeps_the_promises(0);
}

#[test]
fn every_order_keeps_the_promises_of_the_second_models() {
    every_order_keeps_the_promises(1);
}

#[test]
fn every_order_keeps_the_promises_of_the_third_models() {
    every_order_keeps_the_promises(2);
}

#[test]
fn every_order_keeps_the_promises_of_the_last_models() {
    every_order_keeps_the_promises(TESTS - 1);
}
