//! For tests in their own process: a broken rule of the fault log, or a withheld means.

use crate::sys::per_process::PerProcess;

pub(super) const BROKEN: &str = "INDELIBLE_BROKEN_FAULT_LOG";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// A record is counted and given to no object.
    RecordDropped,
    /// The sums are equal whatever the kernel counts.
    CountMisread,
    /// A page that is left unprotected is not remembered.
    OpenForgotten,
    EventsRefused,
}

impl Broken {
    pub(super) fn is_on(self) -> bool {
        static NAMED: PerProcess<Option<String>> = PerProcess::new();
        let named = NAMED.get_or(|_| std::env::var(BROKEN).ok());
        named.as_ref().is_some_and(|named| *named == format!("{self:?}"))
    }
}
