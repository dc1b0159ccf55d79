//! One way to find stores, behind the interface that all of them have in common.

use super::cut::Cut;
use super::range::PageRange;
use std::io;
use std::time::Duration;

/// A mechanism that notices stores to a range.
///
/// Invariant: a page that was stored to is reported by every `collect` until a `settle` that
/// mentions it; a `settle` may leave it to be reported again, even without a store. No stores come
/// between the two.
pub(super) trait Backend: Send + Sync {
    /// Appends the pages that may have been stored to since they were last settled, in ascending
    /// order.
    fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()>;

    /// Everything that `collect` reported equals the primary; pages in `changed` did not before.
    fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()>;

    /// From now on the pages that `collect` reports stand still, in memory or in copies, though
    /// others store. A rung may do more than it is asked for, and make all stores wait.
    fn hold(&mut self, cut: Cut<'_>) -> io::Result<()>;

    /// The page as it was at the moment of the cut, if it was copied.
    fn copy_of(&self, _page: u64) -> Option<*const u8> {
        None
    }

    /// The end of a hold.
    fn release(&mut self) -> io::Result<()>;

    /// The range has so many pages now.
    fn grow(&mut self, pages: usize) -> io::Result<()>;

    /// Comparing so many pages took so long.
    fn compared(&mut self, _pages: u64, _took: Duration) {}

    /// Whether to drop all pages from memory.
    fn drop_due(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// All pages were dropped.
    fn dropped(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// For tests of one backend.
    #[cfg(test)]
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}
