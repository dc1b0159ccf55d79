//! One way to find stores, behind the interface that all of them have in common.

use super::range::PageRange;
use std::io;
use std::time::Duration;

/// A mechanism that notices stores to a range.
///
/// Invariant: a page that was stored to is reported by every `collect` until a `settle` that mentions it; a `settle` may
/// leave it to be reported again, though nobody stored. Nobody stores between the two.
pub(super) trait Backend: Send + Sync {
    /// Appends the pages that may have been stored to since they were last settled, in ascending order.
    fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()>;

    /// Everything that `collect` reported equals the primary; pages in `changed` did not before.
    fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()>;

    /// From now on stores wait.
    fn hold(&mut self) -> io::Result<()>;

    /// They pass again.
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
