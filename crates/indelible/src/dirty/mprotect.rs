//! Rung 2: pages are read-only until the first store, which the SIGSEGV handler lets pass.
//!
//! A system call that writes to a page not yet stored to fails with `EFAULT` on this rung; `/proc/self/mem` and debuggers
//! ignore the protection, so that their stores have to be marked.
//!
//! Invariants:
//! 1. A page that differs from the primary has its bit in its part's [`Pages`], or lines of it were marked.
//! 2. A page without the bit is read-only ([`Pages`] keeps that, whoever stores meanwhile).
//! 3. A page in `again` has been reported before; it is kept writable for as long as it changes.
//! 4. A page in `idle` was found unchanged by the last settle that mentioned it.
//! 5. Parts are adjacent, in order, and cover the range; one is added when the last has no room.
//!
//! No store may happen between `collect` and the end of `settle`: the psync's rule, or a hold. A store that breaks
//! the rule is in this psync, or is found once its page is stored to again: later stores fault like any others (2).

use std::io;

use super::bitmap::Bits;
use super::pages::Pages;
use super::range::{self, PageRange};
use super::watch::Watched;
use crate::sys::{PAGE, max_map_count};

/// More runs than this are protected by one call for all pages; those that are still dirty fault
/// once more.
const RUNS_APART: usize = 256;

struct Part {
    first: usize,
    pages: usize,
    watched: Watched,
}

pub(super) struct Mprotect {
    base: usize,
    pages: usize,
    parts: Vec<Part>,
    again: Bits,
    idle: Bits,
    budget: usize,
    protect: Vec<PageRange>,
}

impl Mprotect {
    /// The range is mapped for reading only.
    pub(super) fn new(base: usize, pages: usize) -> io::Result<Mprotect> {
        // A quarter of the process's mappings; unknown: half of what kernels default to.
        let budget = match max_map_count() {
            0 => 8192,
            limit => limit / 8,
        };
        Mprotect::with_budget(base, pages, budget)
    }

    pub(super) fn with_budget(base: usize, pages: usize, budget: usize) -> io::Result<Mprotect> {
        let mut this = Mprotect {
            base,
            pages: 0,
            parts: Vec::new(),
            again: Bits::new(0),
            idle: Bits::new(0),
            budget,
            protect: Vec::new(),
        };
        this.grow(pages)?;
        Ok(this)
    }

    pub(super) fn grow(&mut self, pages: usize) -> io::Result<()> {
        let extended = self.parts.last_mut().is_some_and(|part| {
            let wanted = pages - part.first;
            let room = part.watched.extend(wanted * PAGE);
            if room {
                part.pages = wanted;
            }
            room
        });
        if !extended {
            let more = pages - self.pages;
            let pages = Pages::new(more, self.budget);
            let watched = Watched::new(self.base + self.pages * PAGE, more * PAGE, Some(pages))?;
            self.parts.push(Part { first: self.pages, pages: more, watched });
        }
        self.again.grow(pages);
        self.idle.grow(pages);
        self.pages = pages;
        Ok(())
    }

    pub(super) fn collect(&self, out: &mut Vec<PageRange>) {
        let kept = out.len();
        for part in &self.parts {
            let Some(pages) = part.watched.pages() else { continue };
            pages.for_each(|page| range::push(out, kept, part.first + page, part.first + page + 1));
        }
    }

    pub(super) fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()> {
        let mut protect = std::mem::take(&mut self.protect);
        protect.clear();
        for run in changed {
            for page in run.within(self.pages) {
                self.idle.clear(page);
                if !self.again.get(page) {
                    self.again.set(page);
                    range::push(&mut protect, 0, page, page + 1);
                }
            }
        }
        for run in unchanged {
            for page in run.within(self.pages) {
                if self.idle.get(page) || !self.again.get(page) {
                    self.idle.clear(page);
                    self.again.set(page);
                    range::push(&mut protect, 0, page, page + 1);
                } else {
                    self.idle.set(page);
                }
            }
        }
        let done = self.protect_runs(&protect);
        self.protect = protect;
        done
    }

    fn protect_runs(&self, runs: &[PageRange]) -> io::Result<()> {
        for part in &self.parts {
            let end = part.first + part.pages;
            let within = |run: &PageRange| {
                let pages = run.within(end);
                pages.start.max(part.first) - part.first..pages.end.max(part.first) - part.first
            };
            let mut concerned = runs.iter().map(within).filter(|pages| !pages.is_empty()).peekable();
            if concerned.peek().is_some() {
                part.watched.close(concerned, runs.len() > RUNS_APART)?;
            }
        }
        Ok(())
    }

    pub(super) fn hold(&self) -> io::Result<()> {
        for (index, part) in self.parts.iter().enumerate() {
            if let Err(e) = part.watched.hold() {
                for part in &self.parts[..index] {
                    let _ = part.watched.release(false);
                }
                return Err(e);
            }
        }
        Ok(())
    }

    /// Pages that still have their bits fault once more.
    pub(super) fn release(&self) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.watched.release(false))
    }
}
