//! Free extents of pages or of virtual addresses, kept by position, to merge neighbours, and by
//! size, for the best fit.
//!
//! Invariants:
//! 1. Both trees hold the same extents; extents neither overlap nor touch.
//! 2. Allocation takes the smallest extent that fits, the lowest of equals, to keep large pieces;
//!    or the largest, for objects that are likely to grow.
//!
//! Cost: O(log n) pages for n free extents.

use super::transaction::TableTransaction;
use crate::error::{Part, Result, StoreError};
use crate::format::root::TreeId;
use crate::format::{DATA, PAGE, TABLE_ROOT};

/// A space's two trees, in pages or bytes.
#[derive(Clone, Copy, Debug)]
pub struct FreeMap {
    by_start: TreeId,
    by_size: TreeId,
}

/// Free space of the data region, in pages.
pub const PAGES: FreeMap = FreeMap { by_start: TreeId::FreeByPage, by_size: TreeId::FreeBySize };
/// Free virtual addresses, in bytes.
pub const ADDRESSES: FreeMap = FreeMap { by_start: TreeId::FreeByAddress, by_size: TreeId::FreeByReach };

impl FreeMap {
    fn add(self, table: &mut TableTransaction<'_>, start: u64, len: u64) -> Result<()> {
        table.insert(self.by_start, (start, 0), len)?;
        table.insert(self.by_size, (len, start), 0)
    }

    fn drop_extent(self, table: &mut TableTransaction<'_>, start: u64, len: u64) -> Result<()> {
        let by_start = table.remove(self.by_start, (start, 0))?;
        let by_size = table.remove(self.by_size, (len, start))?;
        match (by_start, by_size) {
            (Some(found), Some(_)) if found == len => Ok(()),
            _ => Err(StoreError::damaged(Part::FreeSpace, TABLE_ROOT)),
        }
    }

    /// Length of the largest free extent.
    pub fn largest(self, table: &TableTransaction<'_>) -> Result<u64> {
        let Some(slot) = table.before(self.by_size, (u64::MAX, u64::MAX))? else { return Ok(0) };
        Ok(self.within(table, slot.key())?.0)
    }

    /// A checked extent (length, start).
    fn within(self, table: &TableTransaction<'_>, extent: (u64, u64)) -> Result<(u64, u64)> {
        let space = match self.by_start {
            TreeId::FreeByAddress => DATA / PAGE..1 << 47,
            _ => DATA / PAGE..table.pool_len() / PAGE,
        };
        match extent.0.checked_add(extent.1) {
            Some(end) if extent.0 > 0 && extent.1 >= space.start && end <= space.end => Ok(extent),
            _ => Err(StoreError::damaged(Part::FreeSpace, TABLE_ROOT)),
        }
    }

    /// The extent (length, start) for `len` units.
    pub fn best_fit(self, table: &TableTransaction<'_>, len: u64) -> Result<(u64, u64)> {
        let Some(slot) = table.at_or_after(self.by_size, (len, 0))? else {
            let largest = self.largest(table)?;
            return Err(match self.by_start {
                TreeId::FreeByAddress => StoreError::NoAddresses { needed: len, largest },
                _ => StoreError::NoRoom {
                    needed: len.saturating_mul(PAGE),
                    largest: largest * PAGE,
                    free: table.root.free_pages.get() * PAGE,
                },
            });
        };
        self.within(table, slot.key())
    }

    /// Takes `len` contiguous units; returns their start.
    pub fn allocate(self, table: &mut TableTransaction<'_>, len: u64) -> Result<u64> {
        let fit = self.best_fit(table, len)?;
        self.take(table, fit, len)
    }

    /// [`allocate`](Self::allocate) from the front of the largest extent.
    pub fn allocate_roomy(self, table: &mut TableTransaction<'_>, len: u64) -> Result<u64> {
        let fit = self.best_fit(table, self.largest(table)?.max(len))?;
        self.take(table, fit, len)
    }

    fn take(self, table: &mut TableTransaction<'_>, (found, start): (u64, u64), len: u64) -> Result<u64> {
        self.drop_extent(table, start, found)?;
        if found > len {
            self.add(table, start + len, found - len)?;
        }
        Ok(start)
    }

    /// Takes exactly `start..start + len`, if all of it is free.
    pub fn claim(self, table: &mut TableTransaction<'_>, start: u64, len: u64) -> Result<bool> {
        let Some(slot) = table.before(self.by_start, (start.saturating_add(1), 0))? else { return Ok(false) };
        let (size, from) = self.within(table, (slot.value.get(), slot.key().0))?;
        let (end, wanted) = (from + size, start.saturating_add(len));
        if wanted > end {
            return Ok(false);
        }
        self.drop_extent(table, from, size)?;
        if from < start {
            self.add(table, from, start - from)?;
        }
        if wanted < end {
            self.add(table, wanted, end - wanted)?;
        }
        Ok(true)
    }

    /// Frees `start..start + len`; merges neighbours.
    pub fn release(self, table: &mut TableTransaction<'_>, start: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let (mut len, mut start) = self.within(table, (len, start))?;
        if let Some(slot) = table.before(self.by_start, (start, 0))? {
            let (size, from) = self.within(table, (slot.value.get(), slot.key().0))?;
            if from + size > start {
                return Err(StoreError::damaged(Part::FreeSpace, TABLE_ROOT));
            }
            if from + size == start {
                self.drop_extent(table, from, size)?;
                (start, len) = (from, len + size);
            }
        }
        if let Some(slot) = table.at_or_after(self.by_start, (start, 0))? {
            let (size, from) = self.within(table, (slot.value.get(), slot.key().0))?;
            if from < start + len {
                return Err(StoreError::damaged(Part::FreeSpace, TABLE_ROOT));
            }
            if from == start + len {
                self.drop_extent(table, from, size)?;
                len += size;
            }
        }
        self.add(table, start, len)
    }

    /// Calls `visit(start, len)` for every free extent, ascending.
    pub fn for_each(self, table: &TableTransaction<'_>, visit: &mut dyn FnMut(u64, u64)) -> Result<()> {
        table.walk(self.by_start, &mut |_, level, slots| {
            if level == 0 {
                slots.iter().for_each(|slot| visit(slot.key().0, slot.value.get()));
            }
            Ok(())
        })
    }
}
