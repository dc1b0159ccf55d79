/// Why an object's durability class forbids a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassError {
    /// The call is for another class.
    #[error("it is {class}, and this is for objects that are {needed}")]
    Mismatch {
        /// The object's class.
        class: &'static str,
        /// The class that the call needs.
        needed: &'static str,
    },
    /// The object is shared: the pool has none of its bytes.
    #[error(
        "it is shared: its bytes are in the memory of the processes that have it, and the pool has none of them"
    )]
    NoBytes,
    /// Only transactions can read the object.
    #[error("it cannot be readable outside of transactions: {why}")]
    Unreadable {
        /// Reason.
        why: &'static str,
    },
    /// The object cannot have that class.
    #[error("it cannot be {class}: {why}")]
    Refused {
        /// Requested class.
        class: &'static str,
        /// Reason.
        why: &'static str,
    },
}
