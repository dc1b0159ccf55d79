use super::ErrorKind;
use super::kinds::LOST_WORD;
use indelible_store::error::StoreError;
use std::sync::Arc;

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
    #[error("compiled blocks, or functions, have objects of the pool, and both cannot")]
    OtherUsers,
    #[error("it is attached for plain stores and psync, and cannot join a transaction")]
    PsyncObject,
    #[error("no transaction runs on this thread")]
    None,
    #[error("the thread ends, and has no place for a transaction any more")]
    ThreadEnds,
    #[error("it lies in no heap of the transaction")]
    NoHeap,
    #[error("{0:#x} leads to no heap of the transaction")]
    NoBlock(u64),
    #[error("the objects are transactional and on demand, and not attached to be used together")]
    Classes,
    #[error("a block changes objects of one class, and these are transactional and on demand")]
    BlockClasses,
    #[error("a transaction on objects on demand may be run again")]
    AloneOnDemand,
    #[error("it is transactional, and not on demand")]
    NotOnDemand,
    #[error("it is on demand, so that its transactions are not durable when they return")]
    IsOnDemand,
    #[error(
        "more bits of the word at offset {offset:#x} are wrong, with those of its check word, than can be repaired"
    )]
    Lost { offset: u64 },
    #[error("its words have check words, so that {0}")]
    Checked(&'static str),
    #[error("its words have no check words")]
    Unchecked,
    #[error("{0}; memory is ahead of the pool by a durable transaction")]
    Unpublished(Arc<StoreError>),
    #[error("the environment names no pool")]
    NoPool,
    #[error("no handler for SIGSEGV can be installed: {0}")]
    Handler(#[source] std::io::Error),
}

impl TransactionError {
    pub(super) fn kind(&self) -> ErrorKind {
        match self {
            TransactionError::Conflict => ErrorKind::Conflict,
            TransactionError::Inside => ErrorKind::InTransaction,
            TransactionError::OtherUsers => ErrorKind::Held,
            TransactionError::Lost { .. } => ErrorKind::Damaged,
            TransactionError::Unpublished(_) => ErrorKind::Poisoned,
            TransactionError::Classes
            | TransactionError::BlockClasses
            | TransactionError::AloneOnDemand
            | TransactionError::NotOnDemand
            | TransactionError::IsOnDemand
            | TransactionError::PsyncObject
            | TransactionError::Checked(_)
            | TransactionError::Unchecked => ErrorKind::ClassMismatch,
            TransactionError::NoPool => ErrorKind::NotFound,
            TransactionError::Handler(_) => ErrorKind::Io,
            TransactionError::Elsewhere
            | TransactionError::NoObject
            | TransactionError::NoHeap
            | TransactionError::NoBlock(_)
            | TransactionError::None
            | TransactionError::ThreadEnds => ErrorKind::NotAttached,
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
                "attach the object by `Pool::transactional_heap` or `Pool::heap_on_demand`, and name it when the transaction begins"
            }
            TransactionError::NoBlock(_) => {
                "name the heap when the transaction begins, and do not follow null"
            }
            TransactionError::Classes => {
                "attach the transactional ones with `Pool::attach_with_on_demand`, or give all one class (`pmo set --class`)"
            }
            TransactionError::BlockClasses => "give all of them one class (`pmo set --class`)",
            TransactionError::AloneOnDemand => {
                "do what cannot be repeated after the transaction, or give the object the class transactional (`pmo set --class`)"
            }
            TransactionError::NotOnDemand => {
                "attach it by `Pool::transactional_heap` or `Pool::heap_with_on_demand`, or give it the class on demand (`pmo set --class`)"
            }
            TransactionError::IsOnDemand => {
                "attach it by `Pool::heap_on_demand`, or give it the class transactional (`pmo set --class`)"
            }
            TransactionError::Lost { .. } => LOST_WORD,
            TransactionError::Checked(_) => "copy its data to an object without check words",
            TransactionError::Unchecked => {
                "`pmo check` looks at what the pool says of the object; `pmo create --ecc` makes one with check words"
            }
            TransactionError::Unpublished(_) => {
                "make room in the pool, or space for it, then detach what this process has attached of it and attach again: that \
                 recovers every transaction that was acknowledged"
            }
            TransactionError::PsyncObject => {
                "give it the class transactional while it is detached (`pmo set --class`, `pmo_set_durability`), and attach it as such"
            }
            TransactionError::Handler(_) => "the program goes on without explanations",
            TransactionError::NoPool => "set PMO_POOL to the path of one, or use `Pool::statics`",
            TransactionError::NoObject => "name the objects that it uses",
            TransactionError::OtherUsers => {
                "detach them first: a process uses the transactional objects of a pool in one of the two ways"
            }
            TransactionError::ThreadEnds => {
                "run it before the thread's function returns, or on another thread"
            }
            TransactionError::None => "begin one, and use it on the thread that began it until it has ended",
        }
    }
}
