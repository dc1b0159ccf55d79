//! Copies of pages that others may store to at any time.
//!
//! Invariants:
//! 1. `order` has each page that was copied once, in ascending order, with the place of its copy in
//!    `copies`.
//! 2. Pages are read by assembly, never through references: a concurrent store may tear a copy, no
//!    more.

#![allow(unsafe_code)]

use super::range::PageRange;
use crate::sys::{PAGE, flush};

#[repr(align(64))]
struct Copied([u8; PAGE]);

#[derive(Default)]
pub(super) struct Copies {
    order: Vec<(u64, usize)>,
    copies: Vec<Copied>,
}

impl Copies {
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }

    /// # Safety
    /// The range that begins at `base` is mapped for reading as far as the runs go.
    pub(super) unsafe fn take(&mut self, base: usize, runs: &[PageRange]) {
        let known = self.order.len();
        for page in runs.iter().flat_map(|run| run.start..run.end()) {
            let place = match self.order[..known].binary_search_by_key(&page, |(page, _)| *page) {
                Ok(at) => self.order[at].1,
                Err(_) => {
                    self.copies.push(Copied([0; PAGE]));
                    self.order.push((page, self.copies.len() - 1));
                    self.copies.len() - 1
                }
            };
            let bytes = std::ptr::with_exposed_provenance(base + page as usize * PAGE);
            // SAFETY: the caller's promise; the copy lies outside the range.
            unsafe { flush::copy(self.copies[place].0.as_mut_ptr(), bytes, PAGE) };
        }
        self.order.sort_unstable();
    }

    pub(super) fn of(&self, page: u64) -> Option<*const u8> {
        let at = self.order.binary_search_by_key(&page, |(page, _)| *page).ok()?;
        Some(self.copies[self.order[at].1].0.as_ptr())
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.copies.clear();
        self.copies.shrink_to(64);
    }
}
