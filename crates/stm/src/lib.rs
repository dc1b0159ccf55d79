//! A software transactional memory that reports commits to a sink in their serial order.
//!
//! Threads run closures as transactions, atomic and isolated; conflicts are by cache line. At the
//! commit the [`Sink`] gets the changed lines, with a sequence number, before memory and other
//! threads do. Without a sink ([`Volatile`]) it is a plain transactional memory.
//!
//! ```
//! use indelible_stm::{Abort, Direct, Stm, TxWord, Volatile};
//!
//! let (from, to) = (TxWord::new(10), TxWord::new(0));
//! let stm = Stm::new(Direct, Volatile);
//! let mut thread = stm.thread();
//! let result = thread.atomically(|tx| {
//!     let money = tx.get(&from)?;
//!     let left = money.checked_sub(3).ok_or(Abort::Cancel("not enough"))?;
//!     tx.set(&from, left)?;
//!     let before = tx.get(&to)?;
//!     tx.set(&to, before + 3)?;
//!     Ok(())
//! });
//! assert!(result.is_ok());
//! assert_eq!((from.into_inner(), to.into_inner()), (7, 3));
//! ```
//!
//! A [`Memory`] may instead have its words changed in place, and undone on an abort.
//!
//! The algorithm: word-based, time-based transactional memory with write-back and ownership from
//! the first store, after "Time-Based Software Transactional Memory" (Felber, Fetzer, Marlier,
//! Riegel, 2010), with one stripe per line.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod access;
mod actions;
mod clock;
#[allow(unsafe_code)]
mod commit;
mod contention;
mod descriptor;
pub mod ecc;
mod error;
mod gate;
#[allow(unsafe_code)]
mod memory;
mod mutant;
pub mod pairs;
mod sink;
mod stm;
mod stripes;
mod sync;
mod thread;
#[allow(unsafe_code)]
mod transaction;
mod word;
mod write_set;

pub use error::{Abort, BeginError, CommitError, Conflict, Error};
pub use memory::{Damaged, Direct, Memory};
#[cfg(feature = "__mutants")]
pub use mutant::Mutant;
pub use sink::{Receipt, Sink, Volatile};
pub use stm::Stm;
pub use thread::{Alone, Thread};
pub use transaction::{Checkpoint, Transaction, TxWord};
pub use word::Number;
pub use write_set::{Line, WriteSet};
