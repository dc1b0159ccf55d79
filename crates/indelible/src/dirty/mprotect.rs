//! Rung 2: pages are read-only until the first store, which the SIGSEGV handler lets pass.
//!
//! A system call that writes to a still protected page fails with `EFAULT`; stores by
//! `/proc/self/mem` and debuggers need marks.
//!
//! Invariants:
//! 1. A page that differs from the primary has its bit in its part's [`Pages`], or lines of it were
//!    marked.
//! 2. A page without the bit is read-only ([`Pages`] keeps that, also while threads store).
//! 3. Parts are adjacent, in order, and cover the range; one is added when the last has no room.
//!
//! They hold under any advice. A store between `collect` and the end of `settle` breaks the rules:
//! it is in this psync, or is found with the page's next store (2).

use std::io;

use super::backend::Backend;
use super::cut::Cut;
use super::pages::Pages;
use super::policy::FaultPolicy;
use super::range::{self, PageRange};
use super::watch::Watched;
use crate::sys::{PAGE, max_map_count};

struct Part {
    first: usize,
    pages: usize,
    watched: Watched,
}

pub(super) struct Mprotect<P> {
    base: usize,
    pages: usize,
    parts: Vec<Part>,
    policy: P,
    budget: usize,
    protect: Vec<PageRange>,
}

impl<P: FaultPolicy> Mprotect<P> {
    pub(super) fn new(base: usize, pages: usize, mut policy: P) -> io::Result<Mprotect<P>> {
        // A quarter of the process's mappings; if unknown, half of the default of kernels.
        let budget = match max_map_count() {
            0 => 8192,
            limit => limit / 8,
        };
        let budget = policy.splits(budget);
        Mprotect::with_budget(base, pages, budget, policy)
    }

    pub(super) fn with_budget(
        base: usize,
        pages: usize,
        budget: usize,
        policy: P,
    ) -> io::Result<Mprotect<P>> {
        let mut this = Mprotect { base, pages: 0, parts: Vec::new(), policy, budget, protect: Vec::new() };
        Backend::grow(&mut this, pages)?;
        Ok(this)
    }

    fn protect_runs(&mut self, runs: &[PageRange]) -> io::Result<()> {
        let all = self.policy.protects_all(runs.len());
        for part in &self.parts {
            let end = part.first + part.pages;
            let within = |run: &PageRange| {
                let pages = run.within(end);
                pages.start.max(part.first) - part.first..pages.end.max(part.first) - part.first
            };
            let concerned = runs.iter().map(within).filter(|pages| !pages.is_empty());
            if concerned.clone().next().is_some() {
                part.watched.close(concerned, all)?;
            }
        }
        Ok(())
    }
}

impl<P: FaultPolicy> Backend for Mprotect<P> {
    fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()> {
        let kept = out.len();
        for part in &self.parts {
            let Some(pages) = part.watched.pages() else { continue };
            pages.for_each(|page| range::push(out, kept, part.first + page, part.first + page + 1));
        }
        Ok(())
    }

    fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()> {
        let mut protect = std::mem::take(&mut self.protect);
        protect.clear();
        for (runs, changed) in [(changed, true), (unchanged, false)] {
            for page in runs.iter().flat_map(|run| run.within(self.pages)) {
                if !self.policy.leaves(page, changed) {
                    range::push(&mut protect, 0, page, page + 1);
                }
            }
        }
        let done = self.protect_runs(&protect);
        self.protect = protect;
        done
    }

    fn grow(&mut self, pages: usize) -> io::Result<()> {
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
        self.policy.grow(pages);
        self.pages = pages;
        Ok(())
    }

    fn hold(&mut self, _: Cut<'_>) -> io::Result<()> {
        for (index, part) in self.parts.iter().enumerate() {
            if let Err(e) = part.watched.hold_all() {
                for part in &self.parts[..index] {
                    let _ = part.watched.release(false);
                }
                return Err(e);
            }
        }
        Ok(())
    }

    fn release(&mut self) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.watched.release(false))
    }

    #[cfg(test)]
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
