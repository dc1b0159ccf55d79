//! The state of the power.

/// The state of the power, as a detector sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The power is on.
    Fine,
    /// The power fails: the machine runs for the hold-up time.
    Failing,
    /// The detector cannot tell, for this reason: the guard's state stays.
    Blind(String),
}
