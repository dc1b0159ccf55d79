//! Content of a slot of the table, said explicitly: a slot that could not be read is never taken for absent.

use super::Located;
use crate::error::{Part, Result, StoreError};
use crate::format::DATA;
use crate::format::entry::{FREE_MAGIC, SIZE, Slot};
use crate::medium::MediumError;
use crate::space::TableTransaction;

/// See the module.
#[derive(Debug)]
pub enum SlotFound {
    /// An object's.
    Used(Box<Located>),
    /// Nobody's, and says so.
    Free,
    /// It is neither.
    Damaged,
    /// The medium does not give it.
    Unreadable(MediumError),
}

/// Judges the slot at `offset`, as it was read, in a pool of `pool_len` bytes.
pub fn slot_at(read: Result<Slot, MediumError>, seed: u64, offset: u64, pool_len: u64) -> SlotFound {
    if !offset.is_multiple_of(SIZE) || !(DATA..pool_len).contains(&offset) {
        return SlotFound::Damaged;
    }
    let Slot { entry, progress: line } = match read {
        Ok(slot) => slot,
        Err(error) => return SlotFound::Unreadable(error),
    };
    if entry.verify(seed, offset, pool_len) {
        SlotFound::Used(Box::new(Located { offset, entry, line }))
    } else if entry.magic.get() == FREE_MAGIC && entry.own_offset.get() == offset {
        SlotFound::Free
    } else {
        SlotFound::Damaged
    }
}

impl TableTransaction<'_> {
    /// Reads and judges the slot at `offset`.
    #[must_use]
    pub fn slot(&self, offset: u64) -> SlotFound {
        slot_at(self.pages().read(offset), self.seed(), offset, self.pool_len())
    }

    /// Reads and verifies the entry at `offset`.
    ///
    /// # Errors
    /// It is free or damaged, or cannot be read.
    pub fn entry(&self, offset: u64) -> Result<Located> {
        match self.slot(offset) {
            SlotFound::Used(located) => Ok(*located),
            SlotFound::Free | SlotFound::Damaged => Err(StoreError::damaged(Part::Entry, offset)),
            SlotFound::Unreadable(error) => Err(error.into()),
        }
    }
}
