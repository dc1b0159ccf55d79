//! Bounds of a search for extensions, so that opening a root takes constant time.

use crate::error::Result;

/// A search through a root's values.
#[derive(Debug)]
pub struct Search {
    left: usize,
    depth: usize,
}

impl Search {
    pub(super) const fn new() -> Search {
        Search { left: 10_000, depth: 64 }
    }

    pub(super) const fn left(&self) -> usize {
        self.left
    }

    pub(super) const fn goes_on(&self) -> bool {
        self.left > 0 && self.depth > 0
    }

    pub(super) fn within(&mut self, values: impl FnOnce(&mut Search) -> Result<()>) -> Result<()> {
        (self.left, self.depth) = (self.left - 1, self.depth - 1);
        let done = values(self);
        self.depth += 1;
        done
    }
}
