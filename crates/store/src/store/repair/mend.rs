use super::Repair;
use super::trust::unmarked;
use crate::error::{Part, Result};
use crate::format::entry::{Entry, PROGRESS, Progress};
use crate::format::lane::Directory;
use crate::format::node::Node;
use crate::format::root::Root;
use crate::format::superblock::Superblock;
use crate::format::{LANE_DIRECTORY, LINE, TABLE_ROOT};
use crate::medium::read_struct;
use crate::store::check::{Survey, is_damaged};
use crate::store::pool::SuperblockSlot;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Each costs milliseconds.
const TRIES: usize = 256;
const NODE_TRIES: usize = 16;

/// The value that verifies with one bit flipped, and the byte of that bit.
fn one_bit<T>(value: &T, verify: impl Fn(&T) -> bool) -> Option<(T, usize)>
where
    T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy,
{
    let mut tried = *value;
    for at in 0..size_of::<T>() {
        for bit in 0..8 {
            <T as IntoBytes>::as_mut_bytes(&mut tried)[at] ^= 1 << bit;
            if verify(&tried) {
                return Some((tried, at));
            }
            <T as IntoBytes>::as_mut_bytes(&mut tried)[at] ^= 1 << bit;
        }
    }
    None
}

pub(super) fn superblock(slot: &SuperblockSlot, medium: u64) -> Option<Superblock> {
    one_bit(&slot.superblock, |tried| tried.verify(medium).is_ok()).map(|(mended, _)| mended)
}

impl Repair {
    pub(super) fn mend(&mut self, survey: &Survey) -> Result<bool> {
        let (seed, len) = (self.seed, self.len);
        let before = self.actions.len();
        if survey.root.is_none() {
            self.mend_one::<Root>(Part::Root, TABLE_ROOT, |root| root.verify(seed, len))?;
        }
        for &(offset, level) in survey.damaged_nodes.iter().take(NODE_TRIES) {
            self.mend_one::<Node>(Part::Node, offset, |node| node.verify(seed, offset, level))?;
        }
        for &offset in survey.damaged.iter().take(TRIES) {
            self.mend_entry(offset)?;
        }
        for &index in &survey.lost_lanes {
            let offset = LANE_DIRECTORY + u64::from(index) * LINE;
            self.mend_one::<Directory>(Part::LaneDirectory, offset, |slot| slot.in_use(seed, len).is_some())?;
        }
        for &offset in survey.progress.iter().take(TRIES) {
            let entry: Entry = read_struct(&*self.medium, offset)?;
            self.mend_one::<Progress>(Part::Progress, offset + PROGRESS, |line| {
                line.id == entry.id && !is_damaged(line, &entry, seed)
            })?;
        }
        if self.actions.len() > before {
            self.medium.barrier()?;
        }
        Ok(self.actions.len() > before)
    }

    fn mend_entry(&mut self, offset: u64) -> Result<()> {
        let Ok(value) = read_struct::<Entry>(&*self.medium, offset) else { return Ok(()) };
        let (seed, len) = (self.seed, self.len);
        let Some((mended, at)) = one_bit(&value, |entry| entry.verify(seed, offset, len)) else {
            return Ok(());
        };
        let mended = unmarked(mended, at, seed);
        let changed = if at < LINE as usize { 0..LINE as usize } else { at..at + 1 };
        self.medium.write(offset + changed.start as u64, &mended.as_bytes()[changed])?;
        self.did(Part::Entry, offset, Some(mended.name()), format!("one wrong bit put right, in byte {at}"));
        Ok(())
    }

    fn mend_one<T>(&mut self, part: Part, offset: u64, verify: impl Fn(&T) -> bool) -> Result<()>
    where
        T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy,
    {
        let Ok(value) = read_struct::<T>(&*self.medium, offset) else { return Ok(()) };
        let Some((mended, at)) = one_bit(&value, verify) else { return Ok(()) };
        self.medium.write(offset + at as u64, &mended.as_bytes()[at..=at])?;
        self.did(part, offset, None, format!("one wrong bit put right, in byte {at}"));
        Ok(())
    }
}
