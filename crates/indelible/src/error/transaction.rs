//! Errors of transactions.

use super::ErrorKind;

/// Why a step of a transaction did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    #[error("the transaction has met another one")]
    Conflict,
    #[error("a transaction is running on this thread")]
    Inside,
    #[error("it lies in no object of the transaction")]
    Elsewhere,
    #[error("a transaction needs an object at least")]
    NoObject,
    #[error("it lies in no heap of the transaction")]
    NoHeap,
    #[error("{0:#x} leads to no heap of the transaction")]
    NoBlock(u64),
}

impl TransactionError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            TransactionError::Conflict => ErrorKind::Conflict,
            TransactionError::Inside => ErrorKind::InTransaction,
            TransactionError::Elsewhere
            | TransactionError::NoObject
            | TransactionError::NoHeap
            | TransactionError::NoBlock(_) => ErrorKind::NotAttached,
        }
    }

    pub(super) fn remedy(&self) -> &'static str {
        match self {
            TransactionError::Conflict => {
                "return this error from the transaction's closure, which is run again"
            }
            TransactionError::Inside => {
                "use the transaction that runs, by passing it on; psync, attach and the like come before it, or after"
            }
            TransactionError::Elsewhere => "name the object when the transaction begins",
            TransactionError::NoHeap => {
                "attach the object by `Pool::transactional_heap`, and name it when the transaction begins"
            }
            TransactionError::NoBlock(_) => {
                "name the heap when the transaction begins, and do not follow null"
            }
            TransactionError::NoObject => "name the objects that it uses",
        }
    }
}
