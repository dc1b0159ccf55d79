//! The bounds of a search for extensions of other types, which keep the cost of opening a root
//! independent of the root's size.

use crate::error::Result;

/// A search through the values of a root.
#[derive(Debug)]
pub struct Search {
    /// Values that the search may still visit.
    left: usize,
    /// Levels of nesting that the search may still enter.
    depth: usize,
}

impl Search {
    pub(super) const fn new() -> Search {
        Search { left: 10_000, depth: 64 }
    }

    /// Values that the search may still visit.
    pub(super) const fn left(&self) -> usize {
        self.left
    }

    pub(super) const fn goes_on(&self) -> bool {
        self.left > 0 && self.depth > 0
    }

    /// Visits a value: `values` searches those in it.
    pub(super) fn within(&mut self, values: impl FnOnce(&mut Search) -> Result<()>) -> Result<()> {
        (self.left, self.depth) = (self.left - 1, self.depth - 1);
        let done = values(self);
        self.depth += 1;
        done
    }
}
