//! Counts of a campaign, named as in its record.

use crate::kind::Load;
use std::collections::BTreeMap;

/// A power failure with a timely report that everything is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) load: Load,
    /// Time between the line's change and the guard's report, by the host's clock.
    pub(crate) microseconds: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sums: BTreeMap<String, u64>,
    pub(crate) failures: Vec<Failure>,
}

impl Counts {
    pub(crate) fn add(&mut self, name: &str, count: u64) {
        *self.sums.entry(name.to_owned()).or_default() += count;
    }

    pub(crate) fn merge(&mut self, other: Counts) {
        other.sums.iter().for_each(|(name, count)| self.add(name, *count));
        self.failures.extend(other.failures);
    }
}
