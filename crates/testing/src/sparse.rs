//! Sweeps over many places: all of them in a complete run, evenly spread ones on each change.

use crate::Limits;

/// `cargo xtask test --all` sets the variable.
fn is_whole() -> bool {
    std::env::var_os("INDELIBLE_WHOLE").is_some()
}

/// `step`, or 1 in a complete run: a sweep takes each `sparse(step)`th place.
#[must_use]
pub fn sparse(step: usize) -> usize {
    if is_whole() { 1 } else { step }
}

impl Limits {
    /// These limits, with at most `points` cuts unless this is a complete run.
    #[must_use]
    pub fn sparse(self, points: u64) -> Limits {
        if is_whole() { self } else { Limits { points: self.points.min(points), ..self } }
    }
}
