//! Chunks of table pages, taken from free space.

use super::TableTransaction;
use super::extents::PAGES;
use crate::error::{Result, StoreError};
use crate::format::PAGE;
use crate::medium::{Medium, zero_fresh};
use crate::mutant::Mutant;
use zerocopy::little_endian::U64;

/// Table pages per chunk.
const CHUNK: u64 = 64;
/// More than any operation uses.
const SPARE: u64 = 40;

impl TableTransaction<'_> {
    fn spare(&self) -> u64 {
        let chunk = self.root.chunk_end.get().saturating_sub(self.root.chunk_next.get()) / PAGE;
        self.root.free_page_count.get().saturating_add(chunk)
    }

    /// Upholds invariant 4 of `transaction`; without space only `required` operations fail.
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

    fn take_chunk(&mut self) -> Result<()> {
        let pages = CHUNK.min(PAGES.largest(self)?.max(1));
        let first = PAGES.best_fit(self, pages)?.1;
        clear_chunk(self.pages.medium(), first, pages)?;
        PAGES.allocate(self, pages)?;
        self.root.free_pages = U64::new(self.root.free_pages.get().saturating_sub(pages));
        self.begin_chunk(first, pages)
    }

    /// Adds the medium's space behind the pool, now `len` bytes long, as free; zeros from
    /// `zeros_from` on.
    pub fn lengthen(&mut self, len: u64, zeros_from: u64) -> Result<()> {
        let (mut first, end) = (self.pool_len / PAGE, len / PAGE);
        self.pool_len = len;
        self.root.length = U64::new(len);
        if zeros_from > first * PAGE && !Mutant::SurplusIsZero.is_on() {
            self.raise_virgin(zeros_from.min(len));
        }
        // A full pool may lack table pages.
        if self.spare() < SPARE {
            let pages = CHUNK.min(end - first);
            clear_chunk(self.pages.medium(), first, pages)?;
            self.begin_chunk(first, pages)?;
            first += pages;
        }
        PAGES.release(self, first, end - first)?;
        self.root.free_pages = U64::new(self.root.free_pages.get().saturating_add(end - first));
        Ok(())
    }

    fn begin_chunk(&mut self, first: u64, pages: u64) -> Result<()> {
        self.raise_virgin((first + pages) * PAGE);
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

/// Redo of the table's lane needs durable blocks.
fn clear_chunk(medium: &dyn Medium, first: u64, pages: u64) -> Result<()> {
    zero_fresh(medium, first * PAGE, pages * PAGE, 0)?;
    if medium.capabilities().reserves_blocks {
        medium.barrier()?;
    }
    Ok(())
}
