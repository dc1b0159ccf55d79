//! Errors of durability classes.

/// Why an object of this class cannot be used so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassError {
    /// It is of another class than the call is for.
    #[error("it is {class}, and this is for objects that are {needed}")]
    Mismatch {
        /// Its class.
        class: &'static str,
        /// Class that it should have.
        needed: &'static str,
    },
    /// It is shared, and the call is for the bytes that the pool has of an object.
    #[error(
        "it is shared: its bytes are in the memory of the processes that have it, and the pool has none of them"
    )]
    NoBytes,
    /// Plain loads outside of transactions cannot see it.
    #[error("it cannot be readable outside of transactions: {why}")]
    Unreadable {
        /// Reason.
        why: &'static str,
    },
    /// It cannot be of that class.
    #[error("it cannot be {class}: {why}")]
    Refused {
        /// Class that was asked for.
        class: &'static str,
        /// Reason.
        why: &'static str,
    },
}
