//! State of a direct write, and the proof that it is durable.

use crate::error::Result;
use crate::medium::Medium;

/// Proof that direct writes are durable up to a byte of the object.
pub(super) struct Written {
    to: u64,
}

impl Written {
    /// Makes everything written so far durable, of which bytes up to `to` are the object's.
    pub(super) fn by_barrier(medium: &dyn Medium, to: u64) -> Result<Written> {
        medium.barrier()?;
        Ok(Written { to })
    }

    /// End of the durable bytes, from the object's start.
    pub(super) fn to(&self) -> u64 {
        self.to
    }
}

/// State of a direct write that no psync has published.
pub(super) enum Direct {
    /// Nothing was written.
    None,
    /// An earlier writer may have died in one, and part of its announced range may be written.
    Left,
    /// Part of the announced range may have been written, and is not durable.
    Open,
    /// All that was written is durable.
    Written(Written),
}
