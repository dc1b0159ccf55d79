/// Why an object's durability class forbids a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages tell")]
pub enum ClassError {
    #[error("it is {class}, and this is for objects that are {needed}")]
    Mismatch { class: &'static str, needed: &'static str },
    #[error(
        "it is shared: its bytes are in the memory of the processes that have it, and the pool has none of them"
    )]
    NoBytes,
    #[error("it cannot be readable outside of transactions: {why}")]
    Unreadable { why: &'static str },
    #[error("it cannot be {class}: {why}")]
    Refused { class: &'static str, why: &'static str },
}
