//! The common interface of the ways to find stores.

use super::cut::Cut;
use super::range::PageRange;
use std::io;
use std::time::Duration;

/// Invariant: every `collect` reports a stored page until a `settle` that mentions it. No stores
/// come between the two.
pub(super) trait Backend: Send + Sync {
    /// Appends the pages that may have been stored to since their last settle, ascending.
    fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()>;

    /// Everything that `collect` reported equals the primary; pages in `changed` did not before.
    fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()>;

    /// Pages stand still in memory or in copies. A rung may make all stores wait instead.
    fn hold(&mut self, cut: Cut<'_>) -> io::Result<()>;

    fn copy_of(&self, _page: u64) -> Option<*const u8> {
        None
    }

    fn release(&mut self) -> io::Result<()>;

    fn grow(&mut self, pages: usize) -> io::Result<()>;

    fn compared(&mut self, _pages: u64, _took: Duration) {}

    fn found_by_name(&self) -> u64 {
        0
    }

    fn drop_due(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    fn dropped(&mut self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(test)]
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}
