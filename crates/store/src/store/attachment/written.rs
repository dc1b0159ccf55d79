//! State of a direct write, and the proof of its durability.

use crate::error::Result;
use crate::medium::Medium;

/// Proof that direct writes up to a byte are durable.
pub(super) struct Written {
    to: u64,
}

impl Written {
    pub(super) fn by_barrier(medium: &dyn Medium, to: u64) -> Result<Written> {
        medium.barrier()?;
        Ok(Written { to })
    }

    pub(super) fn to(&self) -> u64 {
        self.to
    }
}

pub(super) enum Direct {
    None,
    /// An earlier writer may have died, with a part written.
    Left,
    /// A part may be written.
    Open,
    /// All is durable.
    Written(Written),
}
