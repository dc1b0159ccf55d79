//! Whether an object has changed, as far as its entry in the table tells.

use super::Pool;
use crate::error::Cause;
use indelible_store::error::StoreError;

/// State of an object, as far as its entry in the table tells: two that differ are those of two
/// writers, or one is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// `None`: it is not there.
    binding: Option<u64>,
    pub(crate) written: bool,
}

impl Seen {
    /// A state that nothing is known of.
    pub(crate) const UNKNOWN: Seen = Seen { binding: None, written: true };

    pub(crate) fn now(pool: &Pool, id: &[u8; 16]) -> Result<Seen, Cause> {
        match pool.inner().store.find_id(id) {
            Ok(found) => Ok(Seen { binding: Some(found.entry.binding.get()), written: found.is_bound() }),
            Err(StoreError::NotFound) => Ok(Seen { binding: None, written: false }),
            Err(error) => Err(error.into()),
        }
    }
}
