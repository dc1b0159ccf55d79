//! The models, one after the other: each may take seconds.

use indelible_models::MODELS;
use std::time::Instant;

#[test]
fn every_order_of_threads_keeps_the_promises() {
    for model in MODELS {
        let begin = Instant::now();
        let orders = model.run();
        println!("{orders:>8} orders in {:>5.1} s: {}", begin.elapsed().as_secs_f64(), model.name);
        assert!(orders > 1, "{}: the threads never met", model.name);
    }
}
