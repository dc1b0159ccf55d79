//! Rung 1: userfaultfd write protection that the kernel lifts by itself, and `PAGEMAP_SCAN`.
//!
//! The fast question, "what is unprotected?", also returns never-protected pages: pages only read,
//! absent pages, holes. So the range is divided into chunks of one page table. A chunk is *new*
//! while few of its pages exist; new chunks are asked the slow question (which skips holes by the
//! gigabyte), and dirty pages are protected one by one. Later the whole chunk is protected, absent
//! pages included, and is *known*: from then on exactly its dirty pages are unprotected.
//!
//! Invariants:
//! 1. In a known chunk, a page that differs from the primary is unprotected or in `pending`.
//! 2. In a new chunk, a page that differs from the primary exists and is unprotected, or is in
//!    `pending`. None is left unprotected by `settle`.
//! 3. `pending` has the pages that were protected since the last settle without having been
//!    settled. After a collect they are protected.
//! 4. If `steady`, the last settle protected nothing.
//! 5. `quiet_at` is the count of page faults read before the last question about new chunks. While
//!    the count stands still, no page can have come to exist or lost its protection.
//!
//! They hold under any advice: leaving an unprotected page of a known chunk, and protecting any
//! settled page, is always right.
//!
//! Invariant 5 misses pages that another process stores to (a debugger, `process_vm_writev`). Such
//! a page is reported after this process's next fault.

mod cut;
mod named;
mod new_chunk;

use std::io;
use std::time::{Duration, Instant};

use super::backend::Backend;
use super::chunks::Chunks;
use super::copies::Copies;
use super::cut::Cut;
use super::gate::Gate;
use super::page_tables::PageTables;
use super::policy::ScanPolicy;
use super::range::{self, PageRange};
use super::reprotect::Reprotection;
use crate::sys::pagemap::Seek;
use crate::sys::uffd::Uffd;
use crate::sys::{PAGE, faults};
use named::Named;
use new_chunk::NewChunk;

/// Up to so many pages, scans of new chunks are fast and not timed.
const FEW_PAGES: usize = 16 * 512;

#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchedBy {
    Tracker(Option<&'static Uffd>),
    Service(&'static Uffd),
}

pub(super) struct WpAsync<P> {
    base: usize,
    pages: usize,
    tables: PageTables,
    registers: bool,
    chunks: Chunks,
    policy: P,
    gate: Gate,
    cut: bool,
    copies: Copies,
    beside: bool,
    protects: bool,
    steady: bool,
    pending: Vec<PageRange>,
    protect: Vec<PageRange>,
    plan: Reprotection,
    quiet_at: Option<u64>,
    sparse: (u64, u64),
    filled: bool,
    by_log: bool,
    named: Named,
}

impl<P: ScanPolicy> WpAsync<P> {
    pub(super) fn new(
        base: usize,
        pages: usize,
        by: WatchedBy,
        filled: bool,
        by_log: bool,
        policy: P,
    ) -> io::Result<WpAsync<P>> {
        let (uffd, registers) = match by {
            WatchedBy::Tracker(Some(uffd)) => (uffd, true),
            WatchedBy::Tracker(None) => (Uffd::wp_async()?, true),
            WatchedBy::Service(uffd) => (uffd, false),
        };
        let mut this = WpAsync {
            base,
            pages: 0,
            tables: PageTables::new(base, uffd)?,
            registers,
            chunks: Chunks::new(base),
            policy,
            gate: Gate::new(base, pages * PAGE),
            cut: false,
            copies: Copies::default(),
            beside: false,
            protects: false,
            steady: false,
            pending: Vec::new(),
            protect: Vec::new(),
            plan: Reprotection::default(),
            quiet_at: None,
            sparse: (0, 0),
            filled,
            by_log,
            named: Named::default(),
        };
        this.track(pages, filled)?;
        Ok(this)
    }

    fn track(&mut self, pages: usize, filled: bool) -> io::Result<()> {
        if pages == self.pages {
            return Ok(());
        }
        if self.registers {
            self.tables.register(PageRange::new(self.pages, pages))?;
        }
        // A known chunk's new absent pages need protection, too.
        let shared = self.pages > 0 && self.chunks.is_known(self.pages - 1);
        let protected = match (filled, shared) {
            (true, _) => pages,
            (false, true) => self.chunks.end(self.pages - 1).min(pages),
            (false, false) => self.pages,
        };
        if protected > self.pages {
            self.tables.protect(PageRange::new(self.pages, protected))?;
        }
        self.chunks.grow(pages);
        if filled {
            self.chunks.know(&[PageRange::new(0, pages)]);
        }
        self.policy.grow(pages);
        self.pages = pages;
        self.quiet_at = None;
        // It has a place in the log for the pages before.
        self.named.leave();
        Ok(())
    }

    #[inline]
    fn gather(&mut self, asks: bool, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let mut at = 0;
        let mut asking = Duration::ZERO;
        if asks {
            self.sparse = (0, 0);
        }
        for index in 0..=self.chunks.runs().len() {
            let known = self.chunks.runs().get(index).copied();
            let (from, to) =
                known.map_or((self.pages, self.pages), |run| (run.start as usize, run.end() as usize));
            if asks && at < from {
                let started = (self.pages > FEW_PAGES).then(Instant::now);
                self.existing(PageRange::new(at, from), kept, out)?;
                asking += started.map_or(Duration::ZERO, |started| started.elapsed());
            }
            if from < to {
                self.unprotected(PageRange::new(from, to), kept, out)?;
            }
            at = to;
        }
        if asks {
            self.policy.asked(asking);
        }
        Ok(())
    }

    #[inline]
    fn must_ask(&mut self) -> bool {
        if self.policy.always_asks() {
            self.quiet_at = None;
            return true;
        }
        let before = std::mem::replace(&mut self.quiet_at, faults::count().ok());
        before.is_none() || before != self.quiet_at
    }

    #[inline]
    fn unprotected(&mut self, pages: PageRange, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let seek = if self.protects { Seek::ProtectWritten } else { Seek::Written };
        self.tables.scan(pages, seek, |run, _| {
            range::push(out, kept, run.start as usize, run.end() as usize);
            if self.protects {
                self.pending.push(run);
            }
        })
    }

    fn existing(&mut self, pages: PageRange, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let WpAsync { tables, chunks, policy, pending, protect, sparse, .. } = self;
        let mut new = NewChunk::default();
        let mut close = |new: &NewChunk, pending: &[PageRange]| new.close(pending, policy, protect, sparse);
        tables.scan(pages, Seek::Existing, |run, dirty| {
            let (mut first, last) = (run.start as usize, run.end() as usize);
            while first < last {
                if first as u64 >= new.pages.end() {
                    close(&new, pending);
                    new = NewChunk { pages: chunks.around(first), existing: 0, dirty: pending.len() };
                }
                let end = last.min(new.pages.end() as usize);
                new.existing += end - first;
                if dirty {
                    range::push(out, kept, first, end);
                    pending.push(PageRange::new(first, end));
                }
                first = end;
            }
        })?;
        close(&new, pending);
        Ok(())
    }

    fn reveal(&mut self, kept: usize, out: &mut Vec<PageRange>) -> io::Result<bool> {
        let runs = std::mem::take(&mut self.protect);
        for run in &runs {
            self.tables.protect(*run)?;
            if (self.registers || self.beside) && self.chunks.cover(*run) {
                self.report_late(*run, out)?;
            }
        }
        let revealed = self.chunks.know(&runs);
        if revealed {
            range::normalise(out, kept);
        }
        self.protect = runs;
        self.protect.clear();
        Ok(revealed)
    }

    /// Late stores are not lost. Only stores make pages this process's own; the few settled earlier
    /// are reported once more.
    fn report_late(&mut self, run: PageRange, out: &mut Vec<PageRange>) -> io::Result<()> {
        self.tables.scan(run, Seek::OwnPresent, |run, _| {
            out.push(run);
            self.pending.push(run);
        })
    }

    /// Reports the first `unsettled` of `pending`, which a failed psync left there. Pages that were
    /// stored to again are unprotected, and leave it.
    fn repeat(&mut self, unsettled: usize, kept: usize, out: &mut Vec<PageRange>) {
        let mut protected = self.pending.split_off(unsettled);
        range::normalise(&mut protected, 0);
        range::normalise(&mut self.pending, 0);
        range::normalise(out, kept);
        let rest = range::without(&self.pending, &range::without(&out[kept..], &protected));
        out.extend_from_slice(&rest);
        range::normalise(out, kept);
        protected.extend(rest);
        self.pending = protected;
    }

    #[cfg(test)]
    pub(super) fn known(&self) -> u64 {
        self.chunks.count()
    }

    #[cfg(test)]
    pub(super) fn policy(&self) -> &P {
        &self.policy
    }
}

/// Without protected `pending` pages. Unprotected pages between the runs are reported `late`.
fn protect(
    tables: &mut PageTables,
    runs: &[PageRange],
    pending: &[PageRange],
    late: &mut Vec<PageRange>,
) -> io::Result<()> {
    if range::cover(pending, runs) {
        return Ok(());
    }
    let rest = range::without(runs, pending);
    let ([first, .., last], true) = (&rest[..], runs.len() > 1) else {
        return rest.iter().try_for_each(|run| tables.protect(*run));
    };
    let mut found = Vec::new();
    let between = PageRange::new(first.start as usize, last.end() as usize);
    let done = tables.scan(between, Seek::ProtectWritten, |run, _| found.push(run));
    late.extend(range::without(&found, &rest));
    done
}

impl<P: ScanPolicy> Backend for WpAsync<P> {
    #[inline]
    fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()> {
        let kept = out.len();
        if self.cut {
            out.extend_from_slice(&self.pending);
            range::normalise(out, kept);
            return Ok(());
        }
        self.protects = self.policy.protects_at_scan();
        self.protect.clear();
        let unsettled = self.pending.len();
        let found = self.find(kept, out).and_then(|took| {
            let revealed = !self.protect.is_empty() && self.reveal(kept, out)?;
            Ok(took.filter(|_| !revealed))
        });
        let took = found.inspect_err(|_| {
            self.quiet_at = None;
            self.named.doubt();
        })?;
        if unsettled > 0 {
            self.repeat(unsettled, kept, out);
        }
        if let Some(took) = took {
            let dirty = out[kept..].iter().map(|run| run.count).sum();
            self.policy.scanned(self.pages, took, dirty);
        }
        self.found(kept, out);
        Ok(())
    }

    #[inline]
    fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()> {
        if self.cut {
            self.pending.clear();
            self.steady = false;
            return Ok(());
        }
        if self.steady && unchanged.is_empty() && self.pending.is_empty() && self.policy.is_steady(changed) {
            return Ok(());
        }
        let mut plan = std::mem::take(&mut self.plan);
        plan.reach(changed, unchanged, &mut self.policy, &self.chunks, self.pages);
        range::normalise(&mut self.pending, 0);
        let mut late = Vec::new();
        let mut calls = 0;
        let done = plan.calls(&self.chunks).try_for_each(|runs| {
            calls += 1;
            protect(&mut self.tables, runs, &self.pending, &mut late)
        });
        if done.is_ok() {
            self.chunks.know(plan.protect());
        } else {
            self.named.doubt();
        }
        self.policy.settled(changed, done.is_ok().then_some(calls));
        self.steady = done.is_ok() && plan.protect().is_empty();
        self.plan = plan;
        self.settled(changed, unchanged);
        self.pending.clear();
        self.pending.append(&mut late);
        done
    }

    fn hold(&mut self, cut: Cut<'_>) -> io::Result<()> {
        // Stores after it are the next psync's, whose scan finds them.
        self.named.doubt();
        self.take_cut(cut)
    }

    fn copy_of(&self, page: u64) -> Option<*const u8> {
        self.copies.of(page)
    }

    fn release(&mut self) -> io::Result<()> {
        self.cut = false;
        self.copies.clear();
        self.gate.release()
    }

    fn grow(&mut self, pages: usize) -> io::Result<()> {
        self.track(pages, self.filled)?;
        self.gate.grow(pages * PAGE);
        Ok(())
    }

    #[inline]
    fn compared(&mut self, pages: u64, took: Duration) {
        self.policy.compared(pages, took);
    }

    fn found_by_name(&self) -> u64 {
        self.named.found
    }

    fn drop_due(&mut self) -> io::Result<bool> {
        if !self.policy.may_drop() {
            return Ok(false);
        }
        let mut present = self.sparse.0;
        for run in self.chunks.runs() {
            self.tables.scan(*run, Seek::Present, |run, _| present += run.count)?;
        }
        Ok(self.policy.drops(present, self.chunks.count(), self.sparse.1))
    }

    fn dropped(&mut self) -> io::Result<()> {
        let pages = std::mem::take(&mut self.pages);
        self.chunks = Chunks::new(self.base);
        self.pending.clear();
        self.named.doubt();
        self.steady = false;
        self.policy.dropped();
        self.sparse = (0, 0);
        let done = self.track(pages, false);
        self.pages = pages;
        done
    }

    #[cfg(test)]
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
