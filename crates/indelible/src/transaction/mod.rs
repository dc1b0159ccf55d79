//! Transactions on objects of class [`Transactional`](crate::Class::Transactional), durable when
//! they commit, and [`OnDemand`](crate::Class::OnDemand), durable later
//! (docs/decisions/0046-transactions.md).
//!
//! `indelible-stm` runs closures as transactions and numbers their commits; [`space`] tells the
//! store each commit's whole lines by [`Commits`](indelible_store::store::Commits), and waits for
//! durability without locks. An object's memory ([`attached`]) is mapped for transactions alone: at
//! its own address are closed pages, or read-only ones ([`outside`]).
//!
//! Invariants:
//!
//! 1. Cells of an attached view are stored to only by transactions of the one
//!    [`Stm`](indelible_stm::Stm) of its pool in this process; all other bytes stay as they are.
//! 2. A view is there as long as its [`TxObject`] is, and a transaction borrows its objects: a cell
//!    in the range of one of them stays until it has ended.
//! 3. References into the view of a `TxObject` are of one type, its `T`, without atomics. Those
//!    into the view of a `TxHeap` are to cells alone, which have whole words: whatever a block is
//!    used for next, they are values, and transactions alone access their bytes.
//! 4. A view grows in place, while no transaction runs, or by the one that is alone: places in it
//!    stay.
//! 5. A thread that reads the memory of views for an epoch has the lock `turn` of the objects on
//!    demand, under which views are removed. A thread in a transaction never takes it: an epoch
//!    that has it waits for transactions.
//! 6. The cells of an object with check words are named by the object's own address, where all
//!    access is closed; [`checked`] leads transactions to the words. References to them are to
//!    cells alone, so that no code loads anything there.

mod attached;
mod blocks;
mod cell;
mod checked;
mod demand;
mod durable;
mod epochs;
mod exposed;
mod growth;
mod guarded;
mod heap;
mod home;
mod kept;
mod leaving;
mod marks;
mod member;
mod object;
mod open;
mod open_blocks;
mod outside;
mod own;
mod pending;
mod pointer;
mod run;
mod scrub;
mod space;
mod strays;
mod view;
mod words;

pub(crate) use attached::Attached;
pub use blocks::Telling;
pub(crate) use blocks::{BlockLine, shortage as shortage_of, stored, tell as tell_of, tell_on_demand};
pub use cell::TxCell;
pub use checked::Repairs;
pub(crate) use exposed::{begin as expose_pages, close as close_pages};
pub use heap::TxHeap;
pub(crate) use home::Home;
pub use home::Transactional;
pub use object::TxObject;
pub(crate) use open::OpenTx;
pub use pending::Pending;
pub(crate) use pending::sync;
pub use pointer::TxPtr;
pub use run::{Tx, transaction};
pub use scrub::Scrubbed;
pub(crate) use space::Users;
pub use strays::explain_faults;
