//! The table's lane: a process that takes the table redoes the batches of others, only the newest
//! content of each line, so that its death leaves no older state.

use crate::error::{Part, Result, StoreError};
use crate::format::batch::kind;
use crate::format::root::Root;
use crate::format::{LANE_DIRECTORY, LINE, TABLE_LANE, TABLE_LANE_LEN, TABLE_ROOT};
use crate::lane::{BatchView, LaneLog, Search, damaged, expect_sound, mend, scan, visit_spilled};
use crate::medium::{Medium, WriteCombiner, read_struct};
use crate::mutant::Mutant;
use std::mem::offset_of;
use zerocopy::little_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

/// Applies every table batch behind `log`, and moves `log` to the end. `known`: this process had
/// `log`, so its batches are durable. The caller holds the table.
pub fn catch_up(medium: &dyn Medium, seed: u64, log: &mut LaneLog, known: bool) -> Result<()> {
    if !known {
        mend(medium, seed, log)?;
    }
    let (mut end, mut last) = (*log, 0);
    scan(medium, seed, &mut end, &mut |batch| {
        last = batch.at;
        Ok(())
    })?;
    if known && end == *log {
        return Ok(());
    }
    if !known {
        expect_sound(medium, seed, &end, Search::Whole)?;
    }
    // A publisher makes the batch before its own durable. Rule L12 of docs/protocol.md.
    end.confirm(medium, seed, last)?;
    let (mut done, mut newest_root, mut spilled) = (*log, None, false);
    let mut pages = WriteCombiner::new(medium);
    scan(medium, seed, &mut done, &mut |batch| {
        spilled = redo_batch(medium, seed, batch, &mut |target, bytes| {
            let at = TABLE_ROOT.checked_sub(target).map(|at| at as usize);
            let root = at.and_then(|at| bytes.get(at..at + LINE as usize));
            newest_root = root.and_then(|line| line.try_into().ok()).or(newest_root);
            redo_table(&mut pages, target, bytes)
        })?;
        Ok(())
    })?;
    if !known {
        expect_newest(medium, seed, &done, newest_root)?;
    }
    pages.flush()?;
    // The image lies in free space.
    if spilled && !Mutant::SpillKept.is_on() {
        done.checkpoint(medium, seed)?;
    }
    *log = done;
    Ok(())
}

/// Calls `redo(target, bytes)` for the changes of a batch; whether it lies outside of the lane.
pub(crate) fn redo_batch(
    medium: &dyn Medium,
    seed: u64,
    batch: &mut BatchView<'_, '_>,
    redo: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<bool> {
    let mut spilled = false;
    for index in 0..batch.sections.len() {
        let section = batch.sections[index];
        match section.kind.get() {
            kind::TABLE => batch.redo(index, redo)?,
            kind::SPILL => {
                spilled = true;
                visit_spilled(medium, seed, &batch.log, &section, &mut |image| {
                    (0..image.sections.len()).try_for_each(|index| image.redo(index, redo))
                })?;
            }
            _ => {}
        }
    }
    Ok(spilled)
}

pub(crate) fn redo_table(pages: &mut WriteCombiner<'_>, target: u64, bytes: &[u8]) -> Result<()> {
    let end = target + bytes.len() as u64;
    if target < LANE_DIRECTORY || (target < TABLE_LANE + TABLE_LANE_LEN && end > TABLE_LANE) {
        return Err(StoreError::damaged(Part::Record, target));
    }
    pages.put(target, bytes);
    Ok(())
}

/// Fails if the root on the medium is newer than the lane's newest, which begins with `line`: the
/// lane then lacks an applied batch.
fn expect_newest(
    medium: &dyn Medium,
    seed: u64,
    end: &LaneLog,
    line: Option<[u8; LINE as usize]>,
) -> Result<()> {
    let Some(line) = line.filter(|_| !Mutant::AppliedIgnored.is_on()) else { return Ok(()) };
    let mut redone = Root::new_zeroed();
    redone.as_mut_bytes()[..LINE as usize].copy_from_slice(&line);
    let redone_at = redone.next_binding.get();
    // While the number is not too high, any mix of old and new bytes behaves alike; this order
    // gives crash campaigns fewer images.
    let number: U64 = read_struct(medium, TABLE_ROOT + offset_of!(Root, next_binding) as u64)?;
    if number.get() <= redone_at {
        return Ok(());
    }
    let placed: Root = read_struct(medium, TABLE_ROOT)?;
    let placed_at = placed.next_binding.get();
    if placed.verify(seed, medium.len()) && placed_at > redone_at {
        let proof =
            format!("attach {placed_at} of an object was applied, the lane has them up to {redone_at}");
        return Err(damaged(end, proof));
    }
    Ok(())
}
