//! Finds lines that differ from the last psync without settling: to detect and to undo them.

#![allow(unsafe_code)]

use super::{Core, pages};
use crate::error::Cause;
use crate::shadow::lines_changed_among;
use crate::sys::PAGE;
use indelible_store::store::PageImage;
use std::ops::ControlFlow;

impl Core {
    /// The last psync has zeros from this page on, whatever a failed psync wrote to the primary.
    pub(super) fn fresh(&self) -> Result<u64, Cause> {
        Ok(self.writer()?.published().div_ceil(PAGE as u64))
    }

    pub(super) fn each_difference(
        &mut self,
        mut each: impl FnMut(u64, u64, &PageImage) -> ControlFlow<()>,
    ) -> Result<(), Cause> {
        let fresh = self.fresh()?;
        let (writer, tracked) = self.halves()?;
        tracked.collect()?;
        let shadow = tracked.shadow()?;
        let mut then = [PageImage([0; PAGE])];
        writer.look(|primary| {
            for page in pages(&tracked.ranges) {
                if page < fresh {
                    primary.read(page, &mut then)?;
                } else {
                    then[0].0.fill(0);
                }
                let (ours, lines) = (shadow.page_bytes(page), shadow.lines(page));
                // SAFETY: a page of the shadow, and one that is aligned as its type says.
                let differing = unsafe { lines_changed_among(ours, then[0].0.as_ptr(), lines) };
                if differing != 0 && each(page, differing, &then[0]).is_break() {
                    break;
                }
            }
            primary.wipe(&mut then);
            Ok(())
        })
    }

    pub(crate) fn is_unsynced(&mut self) -> Result<bool, Cause> {
        let mut differs = false;
        self.each_difference(|_, _, _| {
            differs = true;
            ControlFlow::Break(())
        })?;
        Ok(differs)
    }
}
