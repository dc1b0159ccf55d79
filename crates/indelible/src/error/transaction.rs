//! Errors of transactions.

use super::ErrorKind;

/// Why a step of a transaction did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransactionError {
    #[error("the transaction has met another one")]
    Conflict,
    #[error("a transaction is running on this thread")]
    Inside,
    #[error("the cell lies in no object of the transaction")]
    Elsewhere,
    #[error("a transaction needs an object at least")]
    NoObject,
    #[error("the objects are transactional and on demand, and not attached to be used together")]
    Classes,
}

impl TransactionError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            TransactionError::Conflict => ErrorKind::Conflict,
            TransactionError::Inside => ErrorKind::InTransaction,
            TransactionError::Classes => ErrorKind::ClassMismatch,
            TransactionError::Elsewhere | TransactionError::NoObject => ErrorKind::NotAttached,
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
            TransactionError::Elsewhere => "name the cell's object when the transaction begins",
            TransactionError::Classes => {
                "attach the transactional ones with `Pool::attach_with_on_demand`, or give all one class (`pmo set --class`)"
            }
            TransactionError::NoObject => "name the objects that it uses",
        }
    }
}
