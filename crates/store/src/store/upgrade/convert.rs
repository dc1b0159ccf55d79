use super::old::slots;
use super::reserve_slots;
use crate::error::{Part, Result, StoreError};
use crate::format::batch::kind;
use crate::format::entry::{NO_LANE, SIZE, STATE_D, Slot};
use crate::format::lane::{BODY, Directory, HEADERS, Header};
use crate::format::superblock::Superblock;
use crate::format::{LANE_DIRECTORY, LANES, LINE, TABLE_ROOT, v1};
use crate::lane::{Batch, LaneLog};
use crate::medium::{Device, Medium, read_struct};
use crate::recovery::catch_up;
use crate::store::access::read_table_log;
use crate::store::publication::append;
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, IntoBytes};

/// Within the table's lane.
const TOGETHER: usize = 128;

pub(super) fn convert(device: &Arc<dyn Device>, superblock: &Superblock) -> Result<u64> {
    let (medium, seed, len): (&dyn Medium, _, _) =
        (&**device, superblock.seed.get(), superblock.length.get());
    let mut log = read_table_log(medium, seed)?;
    // Batches of format 1 are in place.
    catch_up(medium, seed, &mut log, false)?;
    next_generation(medium, seed, &mut log)?;
    let slots: Vec<u64> = slots(medium, seed, len)?.into_iter().collect();
    reserve_slots(medium, &slots)?;
    for part in slots.chunks(TOGETHER) {
        publish(medium, seed, &mut log, |batch| {
            for offset in part {
                if let Some(slot) = converted(medium, seed, *offset, len)? {
                    batch.copy_lines(*offset, slot.as_bytes());
                }
            }
            Ok(())
        })?;
    }
    publish(medium, seed, &mut log, |batch| void_lanes(medium, seed, len, batch))?;
    next_generation(medium, seed, &mut log)?;
    Ok(slots.len() as u64)
}

fn next_generation(medium: &dyn Medium, seed: u64, log: &mut LaneLog) -> Result<()> {
    medium.barrier()?;
    log.next_generation(medium, seed)?;
    Ok(medium.barrier()?)
}

fn publish(
    medium: &dyn Medium,
    seed: u64,
    log: &mut LaneLog,
    fill: impl FnOnce(&mut Batch) -> Result<()>,
) -> Result<()> {
    let mut batch = Batch::new();
    batch.begin(kind::TABLE, 0, 0);
    fill(&mut batch)?;
    if batch.is_empty() {
        return Ok(());
    }
    batch.seal(seed);
    append(medium, seed, log, &mut batch)
}

fn converted(medium: &dyn Medium, seed: u64, offset: u64, len: u64) -> Result<Option<Slot>> {
    let mut bytes = [0; SIZE as usize];
    medium.read(offset, &mut bytes)?;
    let damaged = || StoreError::damaged(Part::Entry, offset);
    let slot = Slot::read_from_bytes(&bytes).map_err(|_| damaged())?;
    if slot.entry.verify(seed, offset, len) {
        return Ok(None);
    }
    let old = v1::Slot::read_from_bytes(&bytes).map_err(|_| damaged())?;
    let mut slot = old.upgraded(seed, offset, len).ok_or_else(damaged)?;
    slot.entry.state = STATE_D;
    slot.entry.lane = U32::new(NO_LANE);
    slot.entry = slot.entry.sealed(seed);
    Ok(Some(slot))
}

fn void_lanes(medium: &dyn Medium, seed: u64, len: u64, batch: &mut Batch) -> Result<()> {
    let root: crate::format::root::Root = read_struct(medium, TABLE_ROOT)?;
    for lane in 0..LANES {
        let slot = LANE_DIRECTORY + u64::from(lane) * LINE;
        let mut found: Directory = read_struct(medium, slot)?;
        if found.in_use(seed, len) != Some(true) {
            continue;
        }
        let stated = highest(medium, seed, &found)?;
        found.generation = U64::new(stated + 1);
        found.since = root.next_binding;
        batch.copy_lines(slot, found.sealed(seed).as_bytes());
    }
    Ok(())
}

fn highest(medium: &dyn Medium, seed: u64, lane: &Directory) -> Result<u64> {
    let (offset, len) = (lane.offset.get(), lane.len.get());
    let mut highest = lane.generation.get();
    for copy in HEADERS {
        let header: Header = read_struct(medium, offset + copy)?;
        highest = highest.max(header.generation(seed, offset).unwrap_or(0));
    }
    for at in (offset + BODY..offset + len).step_by(LINE as usize) {
        let header: v1::Header = read_struct(medium, at)?;
        if header.is_intact(seed) {
            highest = highest.max(header.generation.get());
        }
    }
    Ok(highest)
}
