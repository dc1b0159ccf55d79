//! Sealed objects in the table.

use super::{CreateOptions, Located};
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_SEALED;
use crate::format::pages_for;
use crate::format::seal::Shape;
use crate::space::TableTransaction;

impl TableTransaction<'_> {
    /// Adds a hidden object with room for its seals; the caller zeroes it, writes its key page and reveals it.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_sealed(
        &mut self,
        name: &str,
        id: [u8; 16],
        now: u64,
        how: &CreateOptions<'_>,
    ) -> Result<Located> {
        self.expect_free(name)?;
        let why = "a sealed object has from 1 byte to 64 TiB";
        let shape = Shape::of(pages_for(how.size)).ok_or(StoreError::BadSize { size: how.size, why })?;
        self.add(name, id, now, how, (true, Some(shape)))
    }
}

impl Located {
    /// Whether its pages are encrypted.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.entry.has(FLAG_SEALED)
    }
}
