//! Another key for a sealed object, which takes the place of the former one as an object that moved
//! does: by one batch of the table.

use super::writer::Writer;
use crate::error::{Result, SealError};
use crate::format::PAGE;
use crate::format::entry::FLAG_SPARSE;
use crate::medium::Medium;
use crate::seal::{PageBytes, SealKey};

impl Writer {
    /// Seals all of the object anew, by a new key, in slots that `owners` open. The other slots go;
    /// holders of the former key read nothing psynced from then on. `progress` is told how many
    /// pages of how many are done.
    ///
    /// Needs the space of the object once more, and gives the former one back. A crash leaves the
    /// former key or the new one, and the whole object.
    ///
    /// # Errors
    /// `NotSealed`; `WrongKey`: an owner opens no slot. `Broken`: a page does not match its seal.
    /// `NoRoom`, `NoSpace`, `HeldStill`: nothing changed.
    pub fn reencrypt(&mut self, owners: &[&SealKey], progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.check()?;
        let Some(sealed) = self.sealed.clone() else { return Err(SealError::NotSealed.into()) };
        let store = self.store.clone();
        store.reap()?;
        let (size, entry) = (self.object.entry.size.get(), self.object.entry);
        let (hidden, object_lock) = store.create_lender(entry.pages.get(), entry.has(FLAG_SPARSE))?;
        let (target, sparse) = (hidden.entry.primary_offset(), entry.has(FLAG_SPARSE));
        let medium = store.latch.enter();
        // The object stays as it is meanwhile: this process is its only writer, and its bases stay
        // as long as it is attached.
        let rotated = sealed.rotate(
            &self.object,
            owners,
            &mut |page, bytes: &PageBytes| {
                if sparse {
                    medium.reserve(target + page * PAGE, PAGE)?;
                }
                Ok(medium.write(target + page * PAGE, bytes)?)
            },
            progress,
        );
        let moved = rotated.and_then(|tree| {
            let changing = self.change()?;
            self.dissolve_page_cache(&changing)?;
            self.settle_within(&changing)?;
            let lane = Some(self.lane.index);
            let object = store.exchange_proven(&self.object, (&hidden, object_lock), &medium, size, lane)?;
            Ok((object, tree))
        });
        let (object, tree) = store.unless_left(moved)?;
        self.object = object;
        sealed.follow(tree);
        // It has all pages for itself.
        self.take_layers(None);
        self.backed.clear();
        Ok(())
    }
}
