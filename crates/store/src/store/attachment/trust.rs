//! Whether only typed code stored an object's durable bytes. The table's mark is cleared before
//! foreign bytes become durable, and set after verified bytes are.

use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::format::entry::FLAG_TYPED;

impl Writer {
    /// Whether only typed code stored the durable bytes.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        self.object.entry.has(FLAG_TYPED)
    }

    /// Whether nothing was ever psynced: the object reads as zeros.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match &self.sealed {
            // Psyncs of keys leave it blank.
            Some(sealed) => sealed.is_blank(),
            None => self.standing.psyncs == 0 && self.standing.published == 0,
        }
    }

    /// Changes the mark, durably.
    ///
    /// # Errors
    /// `Poisoned`; those of a change of the table: the mark is as it was.
    pub fn set_typed(&mut self, typed: bool) -> Result<()> {
        if self.is_typed() == typed {
            return Ok(());
        }
        if self.is_poisoned() {
            return Err(StoreError::Poisoned);
        }
        let offset = self.object.offset;
        self.store.update(|table| {
            let mut object = table.entry(offset)?;
            object.entry.set(FLAG_TYPED, typed);
            table.put_entry(&object)
        })?;
        // The next change rereads the entry.
        self.object.entry.set(FLAG_TYPED, typed);
        Ok(())
    }
}
