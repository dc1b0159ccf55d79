//! The safe half of Indelible: formats, lanes, commit, recovery, the object table and free space,
//! over any [`medium::Medium`]. No mapping, no threads of its own, no unsafe code.
//!
//! Dependencies point one way: format ← seal ← medium ← space ← lane ← table ← commit ← recovery ←
//! store.
#![forbid(unsafe_code)]

#[cfg(feature = "__replay")]
pub use entropy::with_seed;
#[cfg(feature = "__mutants")]
pub use mutant::with_mutant;
#[doc(hidden)]
pub use mutant::{Mutant, Selected};

pub mod commit;
pub mod company;
mod entropy;
pub mod error;
pub mod format;
pub mod lane;
pub mod medium;
mod mutant;
pub mod recovery;
pub mod seal;
#[doc(hidden)]
pub mod slices;
pub mod space;
pub mod store;
mod sync;
pub mod table;
