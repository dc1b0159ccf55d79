//! The two superblock slots.
//!
//! Invariant: at any instant one slot is durable as written. A slot whose durable write failed may
//! be visible without being durable, and is then the newest. So writes of both begin with the
//! newest.

use crate::error::{Part, Result, StoreError};
use crate::format::VERSION;
use crate::format::superblock::{SLOTS, SlotFault, Superblock};
use crate::medium::{Device, Medium, read_struct};
use crate::mutant::Mutant;
use std::cmp::Reverse;
use zerocopy::little_endian::U64;
use zerocopy::{FromZeros, IntoBytes};

/// A superblock slot on the medium.
#[derive(Clone, Copy, Debug)]
pub struct SuperblockSlot {
    /// Its offset in the pool.
    pub offset: u64,
    /// Its bytes, verified or not.
    pub superblock: Superblock,
    /// Defect; `None`: usable.
    pub fault: Option<SlotFault>,
}

pub(in crate::store) fn superblocks(medium: &dyn Medium) -> Result<[SuperblockSlot; 2]> {
    let slot = |offset: u64| -> Result<SuperblockSlot> {
        let fits = offset + size_of::<Superblock>() as u64 <= medium.len();
        let superblock = if fits { read_struct(medium, offset)? } else { Superblock::new_zeroed() };
        Ok(SuperblockSlot { offset, superblock, fault: superblock.verify(medium.len()).err() })
    };
    Ok([slot(SLOTS[0])?, slot(SLOTS[1])?])
}

const LOOKS: usize = 4;

/// Rereads unusable slots: the pool may be growing.
pub(in crate::store) fn settled_superblocks(device: &dyn Device) -> Result<[SuperblockSlot; 2]> {
    let mut slots = superblocks(device)?;
    for _ in 0..LOOKS {
        let found = in_force(&slots, device.len());
        if !matches!(found, Err(StoreError::Truncated { .. } | StoreError::Damaged { .. })) {
            break;
        }
        device.verify()?;
        slots = superblocks(device)?;
    }
    Ok(slots)
}

pub(in crate::store) fn faults(slots: &[SuperblockSlot; 2]) -> Vec<(SlotFault, Superblock)> {
    slots.iter().filter_map(|slot| Some((slot.fault?, slot.superblock))).collect()
}

pub(in crate::store) fn in_force(slots: &[SuperblockSlot; 2], medium: u64) -> Result<Superblock> {
    let sound = slots.iter().filter(|slot| slot.fault.is_none()).map(|slot| slot.superblock);
    let newest = sound.max_by_key(|superblock| superblock.sequence.get());
    newest.ok_or_else(|| why_unusable(&faults(slots), medium))
}

/// Durably in turn, an unusable slot first, else the newest; returns the last. `superblock` has the
/// number in force; `is_usable`: a slot can be in force.
pub(in crate::store) fn write_superblocks(
    medium: &dyn Medium,
    mut superblock: Superblock,
    is_usable: impl Fn(&SuperblockSlot) -> bool,
) -> Result<Superblock> {
    let mut slots = superblocks(medium)?;
    slots.sort_by_key(|slot| Reverse(slot.superblock.sequence.get()));
    if Mutant::SureSlotRisked.is_on() {
        slots.reverse();
    }
    slots.sort_by_key(is_usable);
    for slot in slots {
        superblock.sequence = U64::new(superblock.sequence.get() + 1);
        superblock = superblock.sealed();
        medium.write_durable(slot.offset, superblock.as_bytes())?;
    }
    Ok(superblock)
}

pub(in crate::store) fn why_unusable(faults: &[(SlotFault, Superblock)], medium: u64) -> StoreError {
    for (fault, slot) in faults {
        match *fault {
            SlotFault::Version(found) => {
                let release = if found > VERSION { slot.release() } else { String::new() };
                return StoreError::Version { found, known: VERSION, release };
            }
            SlotFault::Features(bits) => return StoreError::Features { bits, release: slot.release() },
            SlotFault::Upgrading => return StoreError::Upgrading,
            SlotFault::Geometry if slot.length.get() > medium => {
                return StoreError::Truncated { pool: slot.length.get(), medium };
            }
            _ => {}
        }
    }
    if faults.iter().all(|(fault, _)| *fault == SlotFault::NoMagic) {
        return StoreError::NotAPool;
    }
    StoreError::damaged(Part::Superblock, SLOTS[0])
}
