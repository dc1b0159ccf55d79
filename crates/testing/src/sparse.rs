//! Sweeps over many places: all of them in a complete run, evenly spread ones on each change.

use crate::Limits;

/// Set to sweep every place, as `cargo xtask test --all` does.
pub const WHOLE: &str = "INDELIBLE_WHOLE";

/// `step`, or 1 in a complete run: a sweep takes each `sparse(step)`th place.
#[must_use]
pub fn sparse(step: usize) -> usize {
    if std::env::var_os(WHOLE).is_some() { 1 } else { step.max(1) }
}

impl Limits {
    /// These limits, with at most `points` cuts unless the run is a complete one.
    #[must_use]
    pub fn sparse(self, points: u64) -> Limits {
        let most = if sparse(2) == 1 { u64::MAX } else { points };
        Limits { points: self.points.min(most), ..self }
    }
}
