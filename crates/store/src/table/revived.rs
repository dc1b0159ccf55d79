//! Objects kept elsewhere that return to a pool, with their identity and address.

use super::objects::entry_hash;
use super::{CreateOptions, Located, check_name};
use crate::error::{Result, StoreError};
use crate::format::entry::Progress;
use crate::format::entry::{
    Entry, FLAG_BASE, FLAG_CONTENT, FLAG_DELETED, FLAG_FOREIGN, FLAG_HIDDEN, FLAG_OVERLAY, FLAG_READ_ONLY,
    MAGIC, NO_LANE, STATE_D,
};
use crate::format::root::TreeId;
use crate::format::{PAGE, pages_for};
use crate::space::{ADDRESSES, TableTransaction};
use zerocopy::little_endian::{U32, U64};

const LARGEST: u64 = 1 << 46;

impl TableTransaction<'_> {
    /// Adds a hidden object like the untrusted `kept`, with a new extent. `window`: start and
    /// length of the pool's addresses.
    ///
    /// # Errors
    /// `Exists`: the name or the ID is taken. `AddressesTaken`, `BadSize`, `BadName`, `NoRoom`,
    /// `ObjectFeature`.
    pub fn revive(&mut self, kept: &Entry, window: (u64, u64)) -> Result<Located> {
        let mut entry = *kept;
        let (name, size) = (entry.name(), entry.size.get());
        check_name(&name)?;
        if self.find(&name)?.is_some() || self.find_id(&entry.id)?.is_some() {
            return Err(StoreError::Exists);
        }
        if let Some(unknown) = entry.undefined() {
            return Err(StoreError::ObjectFeature { unknown });
        }
        if size == 0 || size > LARGEST {
            return Err(StoreError::BadSize { size, why: "an object has from 1 byte to 64 TiB" });
        }
        let pages = entry.pages_of(size).unwrap_or_else(|| pages_for(size));
        entry.pages = U64::new(pages);
        if !entry.has_whole_pairs() {
            let why = "an object with check words has whole pairs of pages, and is not sealed";
            return Err(StoreError::BadSize { size, why });
        }
        let (address, reserved) = (entry.address.get(), entry.reserved.get());
        let taken = StoreError::AddressesTaken { address, len: reserved };
        let end = address.checked_add(reserved).filter(|_| reserved >= pages * PAGE);
        let inside = end.is_some_and(|end| address >= window.0 && end - window.0 <= window.1);
        if !inside || !address.is_multiple_of(PAGE) || !reserved.is_multiple_of(PAGE) {
            return Err(taken);
        }
        if entry.has(FLAG_BASE) && !(entry.has(FLAG_FOREIGN) && entry.has(FLAG_READ_ONLY)) {
            return Err(StoreError::BadName { why: "it is that of a snapshot which can be written to" });
        }
        self.stock_up(true)?;
        if !entry.has(FLAG_FOREIGN) && !ADDRESSES.claim(self, address, reserved)? {
            return Err(taken);
        }
        entry.magic = U32::new(MAGIC);
        if entry.has(FLAG_CONTENT) {
            entry.set(FLAG_READ_ONLY, true);
        }
        entry.set(FLAG_HIDDEN, true);
        entry.set(FLAG_OVERLAY, false);
        entry.set(FLAG_DELETED, false);
        entry.hold_in(None);
        entry.forget_ties();
        entry.primary = U64::new(self.take_extent(pages)?);
        (entry.state, entry.lane) = (STATE_D, U32::new(NO_LANE));
        (entry.binding, entry.pid, entry.boot) = Default::default();
        (entry.base, entry.overlay, entry.based, entry.users) = Default::default();
        self.enter(entry)
    }

    /// Free addresses for `size` bytes: `reserved` of them or, without such a piece, as for a new
    /// object.
    ///
    /// # Errors
    /// `NoAddresses`.
    pub fn free_addresses(&mut self, size: u64, reserved: u64) -> Result<(u64, u64)> {
        let len = pages_for(size.min(LARGEST)) * PAGE;
        let kept = CreateOptions { reach: reserved.min(1 << 47), ..CreateOptions::default() };
        let (address, reserved) = match self.take_addresses(len, &kept) {
            Err(StoreError::NoAddresses { .. }) => self.take_addresses(len, &CreateOptions::default())?,
            taken => taken?,
        };
        ADDRESSES.release(self, address, reserved)?;
        Ok((address, reserved))
    }

    /// Gives a hidden object its name.
    ///
    /// # Errors
    /// `Exists`.
    pub fn reveal(&mut self, hidden: &Located) -> Result<Located> {
        if self.find(&hidden.entry.name())?.is_some() {
            return Err(StoreError::Exists);
        }
        self.stock_up(true)?;
        let mut object = Located { line: Progress::default(), ..*hidden };
        self.remove(TreeId::Names, (entry_hash(self.seed(), &object.entry), object.offset))?;
        object.entry.set(FLAG_HIDDEN, false);
        self.insert(TreeId::Names, (entry_hash(self.seed(), &object.entry), object.offset), object.offset)?;
        self.put_entry(&object)?;
        Ok(object)
    }
}
