//! Far pointers of a heap, and the entries that they lead through, as programs see them; names that
//! entries have instead of IDs.

mod compact;
mod public;
mod resolvers;

pub use compact::{Compacted, FarPointer};
pub(crate) use resolvers::built_in;
