//! Rung 3: the caller names what it changed.
//!
//! Invariant: a page in `noted` was named and not settled since.

use super::bitmap::Tree;
use super::range::{self, PageRange};

#[derive(Debug)]
pub(super) struct Named {
    pages: usize,
    noted: Tree,
}

impl Named {
    pub(super) fn new(pages: usize) -> Named {
        Named { pages, noted: Tree::new(pages) }
    }

    pub(super) fn grow(&mut self, pages: usize) {
        let larger = Tree::new(pages);
        self.noted.for_each(|page| larger.set(page));
        *self = Named { pages, noted: larger };
    }

    pub(super) fn note(&self, run: PageRange) {
        for page in run.within(self.pages) {
            self.noted.set(page);
        }
    }

    pub(super) fn collect(&self, out: &mut Vec<PageRange>) {
        let kept = out.len();
        self.noted.for_each(|page| range::push(out, kept, page, page + 1));
    }

    pub(super) fn settle(&self, runs: &[PageRange]) {
        for run in runs {
            for page in run.within(self.pages) {
                self.noted.clear(page);
            }
        }
    }
}
