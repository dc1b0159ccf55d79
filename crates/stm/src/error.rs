/// The transaction met another one and has no effect: return, and run it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transaction has met another one; return this error from the closure, which is run again")]
#[non_exhaustive]
pub struct Conflict;

/// How a closure declines its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort<E> {
    /// Run it again.
    Conflict(Conflict),
    /// The program cancels it.
    Cancel(E),
}

impl<E> From<Conflict> for Abort<E> {
    fn from(conflict: Conflict) -> Self {
        Abort::Conflict(conflict)
    }
}

/// Why a transaction could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BeginError {
    /// The thread is in a transaction: pass that one on.
    #[error(
        "a transaction runs on this thread already; use it, by passing it to the function that needs one"
    )]
    Nested,
    /// The process is a child of the memory's owner.
    #[error(
        "this process was forked from the one that has the transactional memory; attach the objects anew"
    )]
    Forked,
}

/// Why a step to commit failed. `R` is the sink's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError<R> {
    /// Aborted; it can be run again.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The sink refused it: it is aborted.
    #[error("the commit was refused, and nothing of the transaction is left")]
    Refused(#[source] R),
    /// Committed in memory; durability unknown.
    #[error("the transaction is committed in memory, and may not be durable")]
    Unacknowledged(#[source] R),
    /// The process was forked during the transaction, which is aborted in the child.
    #[error("this process was forked in the middle of a transaction, which goes on in its parent alone")]
    Forked,
}

/// Why a transaction did not take place. `E` is the closure's error, `R` the sink's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error<E, R> {
    #[error("the transaction was cancelled, and nothing of it is left")]
    /// The closure cancelled it.
    Cancelled(#[source] E),
    /// It did not begin.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// The sink refused it without effect.
    #[error("the commit was refused, and nothing of the transaction is left")]
    Refused(#[source] R),
    /// Committed in memory; durability unknown.
    #[error("the transaction is committed in memory, and may not be durable")]
    Unacknowledged(#[source] R),
    /// It read a word that is damaged beyond repair.
    #[error("the word at {0:#x} is damaged beyond repair, and nothing of the transaction is left")]
    Lost(usize),
    /// The process was forked during the transaction, which is aborted in the child.
    #[error("this process was forked in the middle of a transaction, which goes on in its parent alone")]
    Forked,
}
