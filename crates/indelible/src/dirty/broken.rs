//! For tests that have a process of their own: a rule of the fault log that is broken there, or a
//! means that is withheld.

use std::sync::OnceLock;

/// The variable that names it.
pub(super) const BROKEN: &str = "INDELIBLE_BROKEN_FAULT_LOG";

/// One rule, broken, or one thing that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A record is counted and given to no object.
    RecordDropped,
    /// The sums are equal whatever the kernel counts.
    CountMisread,
    /// A page that is left unprotected is not remembered.
    OpenForgotten,
    /// The kernel refuses the events.
    EventsRefused,
}

impl Broken {
    pub(super) fn is_on(self) -> bool {
        static NAMED: OnceLock<Option<String>> = OnceLock::new();
        let named = NAMED.get_or_init(|| std::env::var(BROKEN).ok());
        named.as_ref().is_some_and(|named| *named == format!("{self:?}"))
    }
}
