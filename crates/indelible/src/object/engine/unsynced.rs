//! Whether anything was stored since the last psync, for callers that are about to forget it.

use super::{Core, absent, bytes_of, pages};
use crate::dirty::PageRange;
use crate::error::Cause;
use crate::shadow::lines_changed_among;
use crate::sys::PAGE;
use indelible_store::store::PageImage;

impl Core {
    /// Whether a line differs from the last psync. Nothing is settled: what the tracker reports here, it reports again. Reads
    /// the primary up to the first page that differs.
    pub(crate) fn is_unsynced(&mut self) -> Result<bool, Cause> {
        let (Some(writer), Some(shadow)) = (&self.writer, &mut self.shadow) else {
            return Err(absent(&self.lost));
        };
        self.ranges.clear();
        shadow.collect(&mut self.ranges)?;
        let mut primary = Box::new(PageImage([0; PAGE]));
        for page in pages(&self.ranges) {
            let offset = bytes_of(PageRange { start: page, count: 1 }).start as u64;
            writer.store().read_object(writer.object(), offset, &mut primary.0)?;
            let (ours, lines) = (shadow.page_bytes(page), shadow.lines(page));
            // SAFETY: a page of the shadow, and one that is aligned as its type says.
            if unsafe { lines_changed_among(ours, primary.0.as_ptr(), lines) } != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
