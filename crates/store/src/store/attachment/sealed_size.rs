//! The size of an attached sealed object, stated by its authenticated header. The table changes
//! before a growth, and after a shrink. The next resize, or attach for writing, corrects the entry.

use super::grow::{Way, pages_of};
use super::sealed_pages::{Heading, SealedPages};
use super::unlocked::Unlocked;
use super::writer::Writer;
use crate::error::{Result, SealError, StoreError};
use crate::format::PAGE;
use crate::mutant::Mutant;
use crate::store::pool::Store;
use crate::table::{Key, Located};
use std::sync::Arc;
use zerocopy::little_endian::U64;

impl Store {
    /// Resizes an unattached sealed object; shrinking cuts its end. A crash leaves one of the two
    /// sizes.
    ///
    /// # Errors
    /// Those of [`attach_sealed_writer`](Store::attach_sealed_writer); `BadSize`, `NoRoom`,
    /// `NoAddresses`. After another error the size may be the new one.
    pub fn resize_sealed(
        self: &Arc<Self>,
        name: &str,
        key: Key<'_>,
        size: u64,
        unlocked: &Unlocked,
    ) -> Result<Located> {
        self.reap()?;
        self.expect_not_held_still()?;
        let mut writer = self.attach_sealed_writer(name, key, unlocked)?;
        writer.resize(size)?;
        let object = *writer.object();
        let _ = writer.detach();
        Ok(object)
    }
}

impl Writer {
    /// Resizes a sealed object; its memory does not follow.
    ///
    /// # Errors
    /// `NotSealed`; `BadSize`, `NoRoom`, `NoAddresses`, `HeldStill`: nothing changed. After another
    /// error the size may be the new one. Pages that a shrink could not free are no error.
    pub fn resize(&mut self, size: u64) -> Result<()> {
        if self.sealed.is_none() {
            return Err(SealError::NotSealed.into());
        }
        if size == 0 {
            return Err(StoreError::BadSize { size, why: "an object has at least one byte" });
        }
        self.check()?;
        self.finish_resize()?;
        self.resize_sealed(size).map(drop)
    }

    pub(super) fn resize_sealed(&mut self, size: u64) -> Result<bool> {
        pages_of(&self.object, size)?;
        if size < self.object.entry.size.get() {
            if Mutant::CutEarly.is_on() {
                self.cut(size)?;
            }
            self.seal_size(size)?;
            // The next resize or attach frees the pages.
            let _ = self.cut(size);
            return Ok(false);
        }
        let moving = self.sealed.as_ref().map(SealedPages::moving);
        let moved = self.extend(size, Way::Alone);
        drop(moving);
        // The header still has the old size.
        self.size_as_sealed();
        let moved = moved?;
        self.seal_size(size)?;
        Ok(moved)
    }

    fn seal_size(&mut self, size: u64) -> Result<()> {
        let done = self.psync_header(Heading::Size(size));
        self.size_as_sealed();
        done
    }

    pub(super) fn size_as_sealed(&mut self) {
        if let Some(sealed) = &self.sealed {
            self.object.entry.size = U64::new(sealed.size());
        }
    }

    pub(super) fn finish_resize(&mut self) -> Result<()> {
        let Some(sealed) = &self.sealed else { return Err(SealError::NotSealed.into()) };
        let (size, entry) = (sealed.size(), &self.object.entry);
        let finished = size == entry.size.get() && pages_of(&self.object, size)? == entry.pages.get();
        if finished { Ok(()) } else { self.cut(size) }
    }

    /// Cuts the end off an unsealed object without memory.
    ///
    /// # Errors
    /// `BadSize`, `Poisoned`, `HeldStill`; those of the table.
    pub fn shrink(&mut self, size: u64) -> Result<()> {
        if self.sealed.is_some() {
            return Err(SealError::KeyNeeded.into());
        }
        if size == 0 || pages_of(&self.object, size)? > self.object.entry.pages.get() {
            return Err(StoreError::BadSize { size, why: "it is not below the size that the object has" });
        }
        self.check()?;
        self.cut(size)
    }

    fn cut(&mut self, size: u64) -> Result<()> {
        let changing = self.change()?;
        // Redo would overwrite the pages' next owner.
        self.dissolve_page_cache(&changing)?;
        self.settle_within(&changing)?;
        let (store, lane) = (self.store.clone(), self.lane.index);
        let (object, layers) = store.update_then(
            |table| {
                let mut object = table.entry(self.object.offset)?;
                table.stock_up(false)?;
                let (pages, keep) = (object.entry.pages.get(), pages_of(&object, size)?);
                table.shorten(&mut object, keep, size)?;
                store.bind(table, &mut object, lane)?;
                let layers = table.layers(&object)?;
                Ok((object, layers, pages.saturating_sub(keep)))
            },
            |(object, layers, cut)| {
                let end = object.entry.primary_offset() + object.entry.extent_len();
                store.device.discard(end, cut * PAGE);
                (object, layers)
            },
        )?;
        self.object = object;
        self.take_layers(layers);
        self.backed.clear();
        Ok(())
    }
}
