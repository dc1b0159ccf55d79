//! Contents of a table slot. An unreadable slot is never taken for an absent one.

use super::Located;
use crate::error::{Part, Result, StoreError};
use crate::format::entry::{Entry, FREE_MAGIC, SIZE, Slot};
use crate::format::{DATA, PAGE};
use crate::medium::MediumError;
use crate::space::TableTransaction;
use zerocopy::FromBytes;

/// Contents of a slot.
#[derive(Debug)]
pub enum SlotFound {
    /// An object.
    Used(Box<Located>),
    /// Marked as free.
    Free,
    /// Invalid.
    Damaged,
    /// The read failed.
    Unreadable(MediumError),
}

/// Judges the slot read at `offset`.
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

const READ: u64 = 64 * 1024;

impl TableTransaction<'_> {
    /// Reads and judges the slots at `offsets`, in order.
    pub fn slots(&self, offsets: &[u64], visit: &mut dyn FnMut(u64, SlotFound) -> Result<()>) -> Result<()> {
        self.slots_unless(offsets, &|_, _| false, &mut |offset, found| match found {
            Some(found) => visit(offset, found),
            None => Ok(()),
        })
    }

    /// As [`slots`](Self::slots), but the `n`th slot is not judged (`None`) if `skips(n, entry)`
    /// is true for its unproved entry.
    pub fn slots_unless(
        &self,
        offsets: &[u64],
        skips: &dyn Fn(usize, &Entry) -> bool,
        visit: &mut dyn FnMut(u64, Option<SlotFound>) -> Result<()>,
    ) -> Result<()> {
        let (mut buffer, mut rest) = (Vec::new(), offsets);
        while let Some(first) = rest.first() {
            let start = first / PAGE * PAGE;
            let mut end = start;
            let near = rest.iter().take_while(|offset| {
                let page = *offset / PAGE * PAGE;
                let is_near = (start..=end).contains(&page) && page - start < READ;
                let fits = is_near && page < self.pool_len() && !self.pages().has(page);
                end = if fits { end.max(page + PAGE) } else { end };
                fits
            });
            let number = offsets.len() - rest.len();
            let (together, later) = rest.split_at(near.count().max(1));
            rest = later;
            buffer.resize((end - start) as usize, 0);
            let alone = together.len() == 1 || self.pages().medium().read(start, &mut buffer).is_err();
            for (number, &offset) in (number..).zip(together) {
                let bytes = buffer.get((offset - start) as usize..).filter(|_| !alone);
                let found = match bytes.and_then(|bytes| Slot::ref_from_prefix(bytes).ok()) {
                    Some((slot, _)) if skips(number, &slot.entry) => None,
                    Some((slot, _)) => Some(slot_at(Ok(*slot), self.seed(), offset, self.pool_len())),
                    None => Some(self.slot(offset)),
                };
                visit(offset, found)?;
            }
        }
        Ok(())
    }

    /// Reads and judges the slot at `offset`.
    #[must_use]
    pub fn slot(&self, offset: u64) -> SlotFound {
        slot_at(self.pages().read(offset), self.seed(), offset, self.pool_len())
    }

    /// The verified entry at `offset`.
    ///
    /// # Errors
    /// It is free, damaged or unreadable.
    pub fn entry(&self, offset: u64) -> Result<Located> {
        match self.slot(offset) {
            SlotFound::Used(located) => Ok(*located),
            SlotFound::Free | SlotFound::Damaged => Err(StoreError::damaged(Part::Entry, offset)),
            SlotFound::Unreadable(error) => Err(error.into()),
        }
    }
}
