use super::Store;
use crate::error::Result;
use crate::format::PAGE;
use crate::format::entry::FLAG_SPARSE;
use crate::medium::{Medium, ReserveError, clear_fresh, clear_rest, write_fresh};
use crate::mutant::Mutant;
use crate::space::TableTransaction;
use crate::table::Located;

pub(in crate::store) const KEEP: u64 = 256 << 10;

impl Store {
    pub(in crate::store) fn prepare_extent(
        &self,
        table: &mut TableTransaction<'_>,
        object: &Located,
        from: u64,
    ) -> Result<()> {
        let broken = Mutant::NoZeroing.is_on() || Mutant::EarlyCreate.is_on();
        let medium = table.pages().medium();
        let rest = from.next_multiple_of(PAGE) - from;
        if rest > 0 && !broken {
            clear_rest(medium, object.entry.primary_offset() + from, rest)?;
        }
        let start = object.entry.primary_offset() + from + rest;
        let len = object.entry.extent_len() - from - rest;
        if len == 0 {
            return Ok(());
        }
        let virgin = table.root.virgin.get();
        let sparse = object.entry.has(FLAG_SPARSE);
        let used = virgin.saturating_sub(start).min(len);
        if used == len && len <= KEEP && !sparse && !broken && medium.capabilities().barriers_wait_for_all {
            // A barrier would wait for others' writes.
            return Ok(write_fresh(medium, start, &vec![0; len as usize])?);
        }
        if !Mutant::NoZeroing.is_on() {
            clear_fresh(medium, start, len, used)?;
        }
        if !sparse {
            claimed(medium, medium.reserve(start, len), start, len)?;
        }
        if used > 0 && !Mutant::EarlyCreate.is_on() {
            // Before the object exists.
            medium.barrier()?;
        }
        table.raise_virgin(start + len);
        Ok(())
    }

    /// Keeps a little: reclaiming costs more than clearing.
    pub(in crate::store) fn give_back(&self, offset: u64, len: u64) {
        if len > KEEP {
            self.device.discard(offset, len);
        }
    }
}

pub(in crate::store) fn claimed(
    medium: &dyn Medium,
    result: std::result::Result<(), ReserveError>,
    start: u64,
    len: u64,
) -> Result<()> {
    if let Err(ReserveError::NoSpace) = result {
        // Space never allocated is known to read as zeros.
        medium.zero(start, len)?;
    }
    Ok(result?)
}
