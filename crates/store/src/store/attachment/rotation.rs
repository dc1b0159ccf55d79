//! Key rotation of a sealed object, published as a move: by one batch of the table.

use super::writer::Writer;
use crate::error::{Result, SealError};
use crate::format::PAGE;
use crate::format::entry::FLAG_SPARSE;
use crate::medium::Medium;
use crate::seal::{PageBytes, SealKey};

impl Writer {
    /// Seals the object anew by a new key, in the slots that `owners` open; other slots go.
    /// `progress` receives pages done and total. A crash leaves the former key or the new one.
    ///
    /// # Errors
    /// `NotSealed`; `WrongKey`: an owner opens no slot. `Broken`: a page does not match its seal.
    /// `NoRoom`, `NoSpace`, `HeldStill`: nothing changed.
    pub fn reencrypt(&mut self, owners: &[&SealKey], progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.reseal((owners, None), progress)
    }

    /// As [`reencrypt`](Writer::reencrypt); `new` takes the slot of `owner`, the only one that
    /// stays.
    ///
    /// # Errors
    /// As for [`reencrypt`](Writer::reencrypt); `BadKey`: the object is erasable, and `new` is no
    /// key file.
    pub fn renew(
        &mut self,
        owner: &SealKey,
        new: &SealKey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.reseal((&[owner], Some(new)), progress)
    }

    fn reseal(
        &mut self,
        owners: (&[&SealKey], Option<&SealKey>),
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        self.check()?;
        let Some(sealed) = self.sealed.clone() else { return Err(SealError::NotSealed.into()) };
        let store = self.store.clone();
        store.reap()?;
        let (size, entry) = (self.object.entry.size.get(), self.object.entry);
        let (hidden, object_lock) = store.create_lender(entry.pages.get(), entry.has(FLAG_SPARSE))?;
        let (target, sparse) = (hidden.entry.primary_offset(), entry.has(FLAG_SPARSE));
        let medium = store.latch.enter();
        // The attachment keeps the object and its bases.
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
        // It owns all pages.
        self.take_layers(None);
        self.backed.clear();
        Ok(())
    }
}
