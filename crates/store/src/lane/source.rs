//! Sources of the bytes of batches that are too large to be copied into memory first (zero-copy
//! batches).

use crate::medium::Fatal;
use std::ops::Range;

/// Result of writing a part of the lines.
pub type Done = Result<(), Fatal>;

/// Has the bytes of lines that a batch [borrows](super::Batch::borrow_lines), unchanged from
/// `collect` to the end of the commit. If they change all the same, the batch holds bytes of either
/// time; it is valid nevertheless, and the primary gets the batch's bytes.
pub trait BatchSource: Sync {
    /// Fills `out` with the bytes for `target` in the pool.
    fn copy(&self, target: u64, out: &mut [u8]);

    /// Does `work` for parts of `0..lines` that together are all of it: several threads may share
    /// them.
    fn share(&self, lines: u64, work: &(dyn Fn(Range<u64>) -> Done + Sync)) -> Done {
        work(0..lines)
    }
}
