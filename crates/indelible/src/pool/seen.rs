//! Detects changes of an object by its entry in the table.

use super::Pool;
use crate::error::Cause;
use indelible_store::error::StoreError;

/// Two values that differ show that another writer came, or that one is writing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    binding: Option<u64>,
    pub(crate) written: bool,
}

impl Seen {
    pub(crate) const UNKNOWN: Seen = Seen { binding: None, written: true };

    pub(crate) fn now(pool: &Pool, id: &[u8; 16]) -> Result<Seen, Cause> {
        match pool.inner().store.find_id(id) {
            Ok(found) => Ok(Seen { binding: Some(found.entry.binding.get()), written: found.is_bound() }),
            Err(StoreError::NotFound) => Ok(Seen { binding: None, written: false }),
            Err(error) => Err(error.into()),
        }
    }
}
