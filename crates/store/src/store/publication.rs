//! Publication of a change of the table: one batch in its lane, or, for many objects in one step,
//! one that the lane cannot hold.
//!
//! The latter lies in space that is free before and after the change (`lane::spill`). A batch
//! before it raises `virgin` above that place: until then the space counts as never written.

use crate::commit::{self, publish_spilled};
use crate::error::{Result, StoreError};
use crate::format::batch::kind;
use crate::format::root::Applied;
use crate::format::{APPLIED, LINE, PAGE};
use crate::lane::{Batch, LaneLog};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::space::{PAGES, TableTransaction};
use zerocopy::IntoBytes;

/// By which a raised `virgin` lengthens the batch: the root's lines, each a run.
const ROOT: u64 = 8 * LINE;

/// Makes the sealed batch of a transaction.
pub(super) fn fill(batch: &mut Batch, table: &TableTransaction<'_>, seed: u64) {
    batch.clear();
    batch.begin(kind::TABLE, 0, 0);
    table.pages().changed_runs(|offset, bytes| batch.copy_lines(offset, bytes));
    batch.seal(seed);
}

/// Publishes and applies a sealed batch that the lane can hold.
pub(in crate::store) fn append(
    device: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    batch: &mut Batch,
) -> Result<()> {
    if batch.len() > log.capacity() {
        let largest = log.capacity();
        return Err(StoreError::NoRoom { needed: batch.len(), largest, free: largest });
    }
    if Mutant::TableFirst.is_on() {
        commit::apply(device, batch)?;
    }
    if !log.fits(batch.len()) {
        log.checkpoint(device, seed)?;
    }
    commit::publish(device, seed, log, std::slice::from_mut(batch))?;
    apply(device, seed, log, batch)
}

fn apply(device: &dyn Medium, seed: u64, log: &LaneLog, batch: &Batch) -> Result<()> {
    commit::apply(device, batch)?;
    Ok(device.write(APPLIED, Applied::new(seed, log.generation, log.sequence).as_bytes())?)
}

/// Publishes and applies `batch`, the sealed changes of `table`; `(seed, superblock)`: the pool's
/// seed, and its length in the superblock. The image's space is free on return.
///
/// # Errors
/// `NoRoom`, `NoSpace`: nothing happened.
pub(super) fn spill(
    device: &dyn Medium,
    (seed, superblock): (u64, u64),
    log: &mut LaneLog,
    table: &mut TableTransaction<'_>,
    batch: &mut Batch,
) -> Result<()> {
    let mut before = TableTransaction::begin(device, seed, superblock)?;
    let pages = (batch.len() + ROOT).div_ceil(PAGE);
    let place = free_in_both(&before, table, pages)? * PAGE;
    let end = place + pages * PAGE;
    if end > before.root.virgin.get() {
        before.raise_virgin(end);
        before.seal_root()?;
        let mut raised = Batch::new();
        fill(&mut raised, &before, seed);
        append(device, seed, log, &mut raised)?;
        table.raise_virgin(end);
        table.seal_root()?;
        fill(batch, table, seed);
    }
    let pointer = 2 * LINE;
    if !log.fits(pointer) {
        log.checkpoint(device, seed)?;
    }
    publish_spilled(device, seed, log, batch, place)?;
    apply(device, seed, log, batch)?;
    if !Mutant::SpillKept.is_on() {
        log.checkpoint(device, seed)?;
        device.discard(place, pages * PAGE);
    }
    Ok(())
}

/// First of `pages` pages that are free in both.
fn free_in_both(before: &TableTransaction<'_>, after: &TableTransaction<'_>, pages: u64) -> Result<u64> {
    let free = |table: &TableTransaction<'_>| {
        let mut found = Vec::new();
        PAGES.for_each(table, &mut |first, len| found.push((first, first.saturating_add(len))))?;
        Ok::<_, StoreError>(found.into_iter())
    };
    let (mut olds, mut news) = (free(before)?, free(after)?);
    let (mut old, mut new, mut largest) = (olds.next(), news.next(), 0);
    while let (Some((from, to)), Some((first, end))) = (old, new) {
        let (start, stop) = (from.max(first), to.min(end));
        if stop.saturating_sub(start) >= pages && stop <= before.pool_len() / PAGE {
            return Ok(start);
        }
        largest = stop.saturating_sub(start).max(largest);
        (old, new) = if to < end { (olds.next(), new) } else { (old, news.next()) };
    }
    let free = after.root.free_pages.get().saturating_mul(PAGE);
    Err(StoreError::NoRoom { needed: pages * PAGE, largest: largest * PAGE, free })
}
