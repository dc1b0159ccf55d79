//! Chunks of table pages, taken from free space.

use super::TableTransaction;
use super::extents::PAGES;
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::medium::zero_fresh;
use zerocopy::little_endian::U64;

/// Table pages taken from free space at a time.
const CHUNK: u64 = 64;
/// More table pages than any single operation uses.
const SPARE: u64 = 40;

impl TableTransaction<'_> {
    /// Table pages at hand without asking free space.
    fn spare(&self) -> u64 {
        let chunk = self.root.chunk_end.get().saturating_sub(self.root.chunk_next.get()) / PAGE;
        self.root.free_page_count.get().saturating_add(chunk)
    }

    /// Upholds invariant 4 of `transaction`; `required` operations fail when there is no space for more table pages,
    /// others (those that free space) go on with what is at hand.
    pub fn stock_up(&mut self, required: bool) -> Result<()> {
        while self.spare() < SPARE || self.root.chunk_next >= self.root.chunk_end {
            match self.take_chunk() {
                Ok(()) => {}
                Err(StoreError::NoRoom { .. } | StoreError::NoSpace) if !required => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes a chunk from free space, smaller where that is in pieces.
    fn take_chunk(&mut self) -> Result<()> {
        let pages = CHUNK.min(PAGES.largest(self)?.max(1));
        let first = PAGES.best_fit(self, pages)?.1;
        // Redo of the table's lane must find blocks that keep it.
        let medium = self.pages.medium();
        zero_fresh(medium, first * PAGE, pages * PAGE, 0)?;
        if medium.capabilities().reserves_blocks {
            medium.barrier()?;
        }
        PAGES.allocate(self, pages)?;
        self.root.free_pages = U64::new(self.root.free_pages.get().saturating_sub(pages));
        self.raise_virgin((first + pages) * PAGE);
        // The rest of the old chunk joins the list of free pages.
        while self.root.chunk_next < self.root.chunk_end {
            let page = self.root.chunk_next.get();
            self.root.chunk_next = U64::new(page + PAGE);
            self.give_page(page)?;
        }
        self.root.chunk_next = U64::new(first * PAGE);
        self.root.chunk_end = U64::new((first + pages) * PAGE);
        Ok(())
    }
}
