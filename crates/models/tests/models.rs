//! The models, one after the other: each may take seconds. `INDELIBLE_MODEL=text` runs those whose
//! names have it.

use indelible_models::MODELS;
use std::time::Instant;

#[test]
fn every_order_of_threads_keeps_the_promises() {
    let chosen = std::env::var("INDELIBLE_MODEL").unwrap_or_default();
    let models: Vec<_> = MODELS.iter().filter(|model| model.name.contains(&chosen)).collect();
    assert!(!models.is_empty(), "no model has {chosen} in its name");
    for model in models {
        let begin = Instant::now();
        let orders = model.run();
        println!("{orders:>8} orders in {:>5.1} s: {}", begin.elapsed().as_secs_f64(), model.name);
        assert!(orders > 1, "{}: the threads never met", model.name);
    }
}
