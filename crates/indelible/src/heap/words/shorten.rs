//! Gives up free space at a heap's end, before its object shrinks.

use super::{WordHeap, Words};
use crate::error::Cause;
use crate::heap::directory::Directory;
use crate::heap::layout::PAGE;

impl WordHeap {
    /// `Needs`: something beyond is in use; drop the change.
    pub(crate) fn shorten(&self, words: &mut impl Words, size: u64) -> Result<(), Cause> {
        let pages = size / PAGE;
        if self.prepare(words, |window| Directory::open(&window)?.end())? > pages {
            self.reclaim(words)?;
        }
        self.prepare(words, |window| Directory::open(&window)?.shorten(pages))
    }
}
