//! Numbers that a campaign adds up, by the names that its record has for them.

use crate::kind::Load;
use std::collections::BTreeMap;

/// A power failure whose guard said in time that everything is durable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) load: Load,
    /// Time between the change of the line and the guard's report, by the clock of the machine that
    /// emulates.
    pub(crate) microseconds: u64,
    /// Bytes that became durable meanwhile, as the writers say.
    pub(crate) bytes: u64,
}

/// See the module.
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
