//! Sources of batches that are too large to copy into memory first.

use crate::medium::Fatal;
use std::ops::Range;

/// Result of writing some lines.
pub type Done = Result<(), Fatal>;

/// Source of [borrowed](super::Batch::borrow_lines) lines, unchanged from `collect` to the end of
/// the commit.
pub trait BatchSource: Sync {
    /// Copies the bytes for `target` in the pool.
    fn copy(&self, target: u64, out: &mut [u8]);

    /// Calls `work` for parts that cover `0..lines`, possibly in several threads.
    fn share(&self, lines: u64, work: &(dyn Fn(Range<u64>) -> Done + Sync)) -> Done {
        work(0..lines)
    }
}
