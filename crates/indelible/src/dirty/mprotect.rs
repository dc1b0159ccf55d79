//! Rung 2: pages are read-only until the first store, which the SIGSEGV handler lets pass.
//!
//! A system call that writes to a page not yet stored to fails with `EFAULT` on this rung.
//!
//! Invariants:
//! 1. A page that differs from the primary has its bit in its part's `writable`.
//! 2. A page without the bit is read-only. (A page with it may be read-only, too: after a hold.)
//! 3. A page in `again` has been reported before; it is kept writable for as long as it changes.
//! 4. A page in `idle` was found unchanged by the last settle that mentioned it.
//! 5. Parts are adjacent, in order, and cover the range; one is added when the last has no room.
//!
//! No store may happen between `collect` and the end of `settle`: the psync's rule, or a hold.

#![allow(unsafe_code)]

use std::io;

use super::bitmap::Bits;
use super::range::{self, PageRange};
use super::watch::{Table, Watched};
use crate::sys::mmap::{self, Protection};
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
            let table = Table::new(more, self.budget);
            let watched = Watched::new(self.base + self.pages * PAGE, more * PAGE, Some(table))?;
            self.parts.push(Part { first: self.pages, pages: more, watched });
        }
        self.again.grow(pages);
        self.idle.grow(pages);
        self.pages = pages;
        Ok(())
    }

    fn tables(&self) -> impl Iterator<Item = (&Part, &Table)> {
        self.parts.iter().filter_map(|part| part.watched.table().map(|table| (part, table)))
    }

    pub(super) fn collect(&self, out: &mut Vec<PageRange>) {
        let kept = out.len();
        for (part, table) in self.tables() {
            table.writable.for_each(|page| {
                let page = part.first + page;
                range::push(out, kept, page, page + 1);
            });
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
        if runs.len() > RUNS_APART {
            // SAFETY: the tracker's own range; stores meet the handler again.
            unsafe { mmap::protect(self.base, self.pages * PAGE, Protection::Read) }?;
            for (_, table) in self.tables() {
                table.splits.store(0, std::sync::atomic::Ordering::Relaxed);
            }
        }
        for run in runs {
            let pages = run.within(self.pages);
            if runs.len() <= RUNS_APART {
                let len = (pages.end - pages.start) * PAGE;
                // SAFETY: as above.
                unsafe { mmap::protect(self.base + pages.start * PAGE, len, Protection::Read) }?;
            }
            for (part, table) in self.tables() {
                let end = part.first + part.pages;
                for page in pages.start.max(part.first)..pages.end.min(end) {
                    table.writable.clear(page - part.first);
                }
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
            if let Some(table) = part.watched.table() {
                table.splits.store(0, std::sync::atomic::Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Pages that are still in `writable` fault once more (2).
    pub(super) fn release(&self) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.watched.release(false))
    }
}
