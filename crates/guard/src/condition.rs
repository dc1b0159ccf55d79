//! The power, as a detector sees it.

/// The power, as a detector sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It is there.
    Fine,
    /// It fails: the machine goes on for the time that it holds up.
    Failing,
    /// The detector cannot tell, and why: the guard goes on as it was.
    Blind(String),
}
