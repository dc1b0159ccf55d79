//! Lengthening pools in use.
//!
//! Invariant: the root's length is at most that of each superblock slot, which is at most the
//! medium's. So the medium grows first, then both slots, then one batch of the table: a crash
//! leaves one of the two lengths.
//!
//! Other processes learn the medium's length under the table's lock, before they read its lane.

use crate::error::{LengthError, Result};
use crate::format::superblock::{SlotFault, Superblock};
use crate::format::{MAX_POOL, PAGE};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::store::pool::{
    Store, faults, has_room, in_force, is_spared, superblocks, why_unusable, wipe_spare, write_spare,
    write_superblocks,
};
use zerocopy::little_endian::U64;

impl Store {
    /// Makes the pool, and its file, `len` bytes long, rounded down to pages. Other processes
    /// continue. Returns the length, durably; a pool that is as long already stays.
    ///
    /// # Errors
    /// `NotLonger`; `TooLong`: beyond its addresses, its device or any pool; `NoSpace`: the file
    /// cannot grow. Nothing changed then. `ReadOnly`, and errors of the medium: the pool has one of
    /// both lengths.
    pub fn lengthen(&self, len: u64) -> Result<u64> {
        let len = len / PAGE * PAGE;
        // Roots of earlier releases have no length.
        self.update(|table| {
            table.root.length = U64::new(table.pool_len());
            Ok(())
        })?;
        self.update(|table| {
            let old = table.pool_len();
            if len < old {
                return Err(LengthError::NotLonger { old, len }.into());
            }
            if len == old {
                return spare(table.pages().medium());
            }
            expect_at_most(len, MAX_POOL, "no pool has more than")?;
            expect_at_most(len, self.superblock.window_len.get(), "its address window has")?;
            let medium = table.pages().medium();
            let extended = medium.extend(len + PAGE)?;
            expect_at_most(len, extended.len / PAGE * PAGE, "its device has")?;
            if !Mutant::LengthAhead.is_on() {
                medium.barrier()?;
            }
            lengthen_superblocks(medium, len)?;
            table.lengthen(len, extended.zeros_from)
        })?;
        Ok(len)
    }
}

fn expect_at_most(len: u64, max: u64, limit: &'static str) -> Result<()> {
    if len <= max { Ok(()) } else { Err(LengthError::TooLong { len, max, limit }.into()) }
}

fn lengthen_superblocks(medium: &dyn Medium, len: u64) -> Result<()> {
    let slots = superblocks(medium)?;
    let faults = faults(&slots);
    // Other software may have written it.
    let damaged =
        |fault: &SlotFault| matches!(fault, SlotFault::NoMagic | SlotFault::Checksum | SlotFault::Geometry);
    if !faults.iter().all(|(fault, _)| damaged(fault)) {
        return Err(why_unusable(&faults, medium.len()));
    }
    let before = in_force(&slots, medium.len())?;
    let longer = Superblock { length: U64::new(len), ..before };
    write_spare(medium, &longer)?;
    write_superblocks(medium, longer, |slot| slot.fault.is_none())?;
    // Its page is the pool's now.
    if before.length.get() < len { wipe_spare(medium, before.length.get()) } else { Ok(()) }
}

fn spare(medium: &dyn Medium) -> Result<()> {
    let superblock = in_force(&superblocks(medium)?, medium.len())?;
    if is_spared(medium, &superblock) {
        return Ok(());
    }
    if !has_room(medium, &superblock) {
        medium.extend(superblock.length.get() + PAGE)?;
        medium.barrier()?;
    }
    write_spare(medium, &superblock)
}
