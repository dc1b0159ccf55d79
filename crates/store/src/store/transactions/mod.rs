//! Transactions, as far as the medium is concerned: commits, in the order of their numbers, become
//! batches.

mod commits;
mod queue;

pub use commits::Commits;
pub use queue::ChangedLine;
