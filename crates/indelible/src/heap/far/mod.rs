//! Far pointers of a heap, their entries, and names in place of IDs.

mod compact;
mod public;
mod resolvers;

pub use compact::{Compacted, FarPointer};
pub(crate) use resolvers::built_in;
