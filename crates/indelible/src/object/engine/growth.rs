#![allow(unsafe_code)]

use super::{Core, pages};
use crate::error::Cause;
use crate::shadow::{Shadow, copy_page};
use crate::sys::PAGE;

impl Core {
    /// All steps likely to fail precede the publication of the growth.
    pub(crate) fn grow(&mut self, size: u64) -> Result<(), Cause> {
        let (writer, tracked) = self.halves()?;
        // Dirty pages are collected before the primary moves, and copied only if it does.
        tracked.collect()?;
        let end = writer.object().entry.size.get() as usize;
        tracked.keep(size)?;
        let moved = writer.grow(size).inspect_err(|_| tracked.let_go())?;
        if !moved || writer.sealed_pages().is_some() {
            let grown = tracked.grow(writer);
            clear_behind(tracked.shadow()?, end);
            return grown;
        }
        let shadow = tracked.shadow()?;
        let saved: Vec<_> = pages(&tracked.ranges).map(|page| (page, copy_of(shadow, page))).collect();
        // SAFETY: the caller has the object exclusively.
        unsafe { tracked.move_to(writer) }?;
        writer.give_former_up();
        let shadow = tracked.shadow()?;
        for (page, bytes) in saved {
            shadow.stored(page as usize * PAGE..(page as usize + 1) * PAGE);
            // SAFETY: a page of the new shadow, which the caller has exclusively.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), shadow.page_bytes(page).cast_mut(), PAGE)
            };
        }
        clear_behind(shadow, end);
        Ok(())
    }

    /// The object's pages stay mapped throughout.
    pub(crate) fn grow_beside(&mut self, size: u64) -> Result<(), Cause> {
        let (writer, tracked) = self.halves()?;
        tracked.keep(size)?;
        let mapped = tracked.shows_extent();
        writer.grow_beside(size, mapped).inspect_err(|_| tracked.let_go())?;
        tracked.grow(writer)
    }

    /// The requested size: the rest of the last page does not survive growth. Less if it could not
    /// be mapped.
    pub(crate) fn size(&self) -> usize {
        let size = self.writer().map_or(0, |writer| writer.object().entry.size.get() as usize);
        size.min(self.tracked.mapped())
    }

    pub(crate) fn reach(&self) -> usize {
        self.writer().map_or(0, |writer| writer.object().entry.reserved.get() as usize)
    }
}

fn copy_of(shadow: &Shadow, page: u64) -> Box<[u8; PAGE]> {
    let mut bytes = Box::new([0; PAGE]);
    // SAFETY: a page of the shadow; the box lies outside.
    unsafe { copy_page(shadow.page_bytes(page), &mut bytes) };
    bytes
}

/// A shrink cleared the primary: the next comparison would restore the bytes. The caller has the
/// object exclusively.
fn clear_behind(shadow: &Shadow, end: usize) {
    let (page, from) = ((end / PAGE) as u64, end % PAGE);
    if from == 0 {
        return;
    }
    if copy_of(shadow, page)[from..].iter().any(|byte| *byte != 0) {
        shadow.stored(end..end + PAGE - from);
        // SAFETY: within that page, which the caller has exclusively.
        unsafe { std::ptr::write_bytes(shadow.page_bytes(page).cast_mut().add(from), 0, PAGE - from) };
    }
}
