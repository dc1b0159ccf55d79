//! Transactions on the medium: commits become batches in the order of their numbers.

mod commits;
mod queue;

pub use commits::Commits;
pub use queue::ChangedLine;
