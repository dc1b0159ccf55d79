//! A pool of format 1 in format 2, in an overlay.

use crate::error::{Part, Result, StoreError};
use crate::format::batch::MAGIC;
use crate::format::lane::{BODY, Directory};
use crate::format::root::TreeId;
use crate::format::superblock::SLOTS;
use crate::format::{LANE_DIRECTORY, LANES, LINE, TABLE_LANE, TABLE_LANE_LEN, v1};
use crate::lane::{LaneLog, scan, wrong_bit};
use crate::medium::{Device, Medium, Overlay, read_struct};
use crate::recovery::catch_up;
use crate::space::TableTransaction;
use crate::store::access::read_table_log;
use std::collections::BTreeSet;
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

const PIECE: u64 = 1 << 20;

pub(super) struct OldPool {
    pub(super) overlay: Arc<Overlay>,
    pub(super) seed: u64,
    pub(super) len: u64,
    pub(super) slots: BTreeSet<u64>,
    pub(super) table: Vec<(u64, Vec<u8>)>,
}

impl OldPool {
    /// Nothing on `device` changes.
    pub(super) fn read(device: &Arc<dyn Device>, old: &v1::Superblock) -> Result<OldPool> {
        let overlay = Arc::new(Overlay::new(device.clone()));
        let superblock = old.upgraded().sealed();
        let (seed, len) = (superblock.seed.get(), superblock.length.get());
        for slot in SLOTS {
            overlay.write(slot, superblock.as_bytes())?;
        }
        let medium = &*overlay;
        headers(medium, seed, TABLE_LANE, TABLE_LANE_LEN)?;
        let mut log = read_table_log(medium, seed)?;
        wrong_bits(medium, seed, &log)?;
        catch_up(medium, seed, &mut log, false)?;
        let lane = TABLE_LANE..TABLE_LANE + TABLE_LANE_LEN;
        let mut table = overlay.changed();
        table.retain(|(page, _)| *page >= LANE_DIRECTORY && !lane.contains(page));
        log.next_generation(medium, seed)?;
        let slots = slots(medium, seed, len)?;
        for offset in &slots {
            let found: v1::Slot = read_struct(medium, *offset)?;
            let damaged = StoreError::damaged(Part::Entry, *offset);
            medium.write(*offset, found.upgraded(seed, *offset, len).ok_or(damaged)?.as_bytes())?;
        }
        for lane in lanes(medium, seed, len)? {
            let (offset, len) = (lane.offset.get(), lane.len.get());
            headers(medium, seed, offset, len)?;
            if let Ok(log) = LaneLog::read(medium, seed, offset, len, lane.generation.get()) {
                wrong_bits(medium, seed, &log)?;
            }
        }
        Ok(OldPool { overlay, seed, len, slots, table })
    }
}

pub(super) fn slots(medium: &dyn Medium, seed: u64, len: u64) -> Result<BTreeSet<u64>> {
    let table = TableTransaction::begin(medium, seed, len)?;
    let mut found = BTreeSet::new();
    for tree in [TreeId::Names, TreeId::Ids] {
        table.walk(tree, &mut |_, level, slots| {
            if level == 0 {
                found.extend(slots.iter().map(|slot| slot.value.get()));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn lanes(medium: &dyn Medium, seed: u64, len: u64) -> Result<Vec<Directory>> {
    let mut all = Vec::new();
    for lane in 0..LANES {
        let found: Directory = read_struct(medium, LANE_DIRECTORY + u64::from(lane) * LINE)?;
        all.extend((found.in_use(seed, len) == Some(true)).then_some(found));
    }
    Ok(all)
}

fn headers(medium: &dyn Medium, seed: u64, offset: u64, len: u64) -> Result<()> {
    let (mut at, end) = (offset + BODY, offset + len);
    while at < end {
        let mut piece = vec![0; PIECE.min(end - at) as usize];
        medium.read(at, &mut piece)?;
        for (line, bytes) in (at..).step_by(LINE as usize).zip(piece.chunks_exact(LINE as usize)) {
            if bytes[..4] != MAGIC.to_le_bytes() {
                continue;
            }
            let Ok(header) = v1::Header::read_from_bytes(bytes) else { continue };
            if let Some(header) = header.upgraded(seed) {
                medium.write(line, header.as_bytes())?;
            }
        }
        at += piece.len() as u64;
    }
    Ok(())
}

fn wrong_bits(medium: &dyn Medium, seed: u64, start: &LaneLog) -> Result<()> {
    let mut log = *start;
    loop {
        scan(medium, seed, &mut log, &mut |_| Ok(()))?;
        if !log.fits(LINE) {
            return Ok(());
        }
        let mut bytes = [0; LINE as usize];
        medium.read(log.position(), &mut bytes)?;
        let (generation, sequence, room) = (log.generation, log.sequence, log.len - log.tail);
        let upgraded = |bytes: &[u8]| v1::Header::read_from_bytes(bytes).ok()?.upgraded(seed);
        let fits = |bytes: &[u8]| {
            upgraded(bytes).is_some_and(|header| header.verify(seed, generation, sequence, room))
        };
        let fitting = wrong_bit(&mut bytes, fits).and_then(|_| upgraded(&bytes));
        let Some(header) = fitting else { return Ok(()) };
        medium.write(log.position(), header.as_bytes())?;
    }
}
