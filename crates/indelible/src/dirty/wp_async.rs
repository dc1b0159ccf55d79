//! Rung 1: userfaultfd write protection that the kernel lifts by itself, and `PAGEMAP_SCAN`.
//!
//! The fast question, "what is unprotected?", also returns pages that were never protected: pages
//! only read, absent pages, holes. So the range is divided into chunks of one page table. A
//! chunk is *new* while few of its pages were seen to exist; new chunks are asked the slow question
//! (which skips holes by the gigabyte), and dirty pages are protected one by one. Once more exist,
//! or one is to stay unprotected, the whole chunk is protected, absent pages included, and is
//! *known*: from then on exactly its dirty pages are unprotected.
//!
//! Invariants:
//! 1. In a known chunk, a page that differs from the primary is unprotected or in `pending`.
//! 2. In a new chunk, a page that differs from the primary exists and is unprotected, or is in
//!    `pending`. None is left unprotected by `settle`.
//! 3. `pending` has the pages that were protected since the last settle without having been settled.
//! 4. A page in `hot`, and no other, was found changed by one of the last settles.
//!    If `steady`, those of the last settle are in known chunks and were left unprotected.
//! 5. `quiet_at` is the count of page faults at a moment after which no new chunk was looked at
//!    without being asked. While it stands still, no page can have come to exist or lost its
//!    protection.
//!
//! Protecting costs a system call and a flush a page if done page by page. If few pages change time after
//! time, the scan that finds dirty pages protects them as well (`protects`), in one step: no store is lost
//! between the two, from whatever thread.
//!
//! Invariant 5 does not see pages that another process (a debugger, `process_vm_writev`) stores to.
//! It is relied on only where asking has become dear; such a page is then reported by the first
//! `collect` after the next fault of this process.

use std::io;
use std::time::{Duration, Instant};

use super::chunks::Chunks;
use super::hot::HotPages;
use super::range::{self, PageRange};
use super::reclaim::Reclaim;
use super::reprotect::Reprotection;
use crate::sys::pagemap::{Pagemap, Region, Seek};
use crate::sys::uffd::{Uffd, Watch};
use crate::sys::{PAGE, faults};

/// Pages of a chunk from which on protecting it whole pays.
const MANY: usize = 4;
/// Runs that one pass of a scan may return. The kernel allocates as many for each call.
const REGIONS: usize = 64;
/// Pages of an object up to which its new chunks are always scanned.
const FEW_PAGES: usize = 16 * 512;
/// Nanoseconds from which on a scan of new chunks is worth avoiding.
const DEAR_NS: u128 = 2_000;

/// The descriptor that watches the range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchedBy {
    /// This tracker registers the range, now and after a renewal; with this descriptor, if any.
    Tracker(Option<&'static Uffd>),
    /// The fault service has registered it for missing pages and writes.
    Service(&'static Uffd),
}

#[derive(Debug)]
pub(super) struct WpAsync {
    base: usize,
    pages: usize,
    uffd: &'static Uffd,
    /// Whether a renewed mapping has to be registered here.
    registers: bool,
    pagemap: &'static Pagemap,
    regions: Box<[Region]>,
    chunks: Chunks,
    hot: HotPages,
    /// Whether a settle of the same pages has nothing to do.
    steady: bool,
    /// Whether the next scan of known chunks protects.
    protects: bool,
    pending: Vec<PageRange>,
    protect: Vec<PageRange>,
    plan: Reprotection,
    quiet_at: Option<u64>,
    dear: bool,
    /// Pages that existed in new chunks when they were last asked, and how many chunks those were.
    sparse: (u64, u64),
    reclaim: Reclaim,
}

impl WpAsync {
    /// `filled`: the pages exist already and equal the primary.
    pub(super) fn new(base: usize, pages: usize, by: WatchedBy, filled: bool) -> io::Result<WpAsync> {
        let (uffd, registers) = match by {
            WatchedBy::Tracker(Some(uffd)) => (uffd, true),
            WatchedBy::Tracker(None) => (Uffd::wp_async()?, true),
            WatchedBy::Service(uffd) => (uffd, false),
        };
        let mut this = WpAsync {
            base,
            pages: 0,
            uffd,
            registers,
            pagemap: Pagemap::get()?,
            regions: vec![Region::default(); REGIONS].into(),
            chunks: Chunks::new(base),
            hot: HotPages::default(),
            steady: false,
            protects: false,
            pending: Vec::new(),
            protect: Vec::new(),
            plan: Reprotection::default(),
            quiet_at: None,
            dear: false,
            sparse: (0, 0),
            reclaim: Reclaim::default(),
        };
        this.grow(pages, filled)?;
        Ok(this)
    }

    pub(super) fn grow(&mut self, pages: usize, filled: bool) -> io::Result<()> {
        let (addr, len) = (self.base + self.pages * PAGE, (pages - self.pages) * PAGE);
        if len == 0 {
            return Ok(());
        }
        if self.registers {
            self.uffd.register(addr, len, Watch::Writes)?;
        }
        // A new part may begin in a known chunk, whose absent pages have to be protected, too.
        let shared = self.pages > 0 && self.chunks.is_known(self.pages - 1);
        let protected = match (filled, shared) {
            (true, _) => pages,
            (false, true) => self.chunks.end(self.pages - 1).min(pages),
            (false, false) => self.pages,
        };
        if protected > self.pages {
            self.uffd.protect(addr, (protected - self.pages) * PAGE)?;
        }
        self.chunks.grow(pages);
        if filled {
            // The pages before were filled, too.
            self.chunks.know(&[PageRange::new(0, pages)]);
        }
        self.hot.grow(pages);
        self.pages = pages;
        self.quiet_at = None;
        Ok(())
    }

    fn addr(&self, page: usize) -> usize {
        self.base + page * PAGE
    }

    fn page(&self, addr: u64) -> usize {
        (addr as usize - self.base) / PAGE
    }

    pub(super) fn collect(&mut self, out: &mut Vec<PageRange>) -> io::Result<()> {
        let kept = out.len();
        let timer = self.reclaim.start(self.pages);
        // Left by a collect that failed: its chunks are still new.
        self.protect.clear();
        let unsettled = self.pending.len();
        let asks = self.must_ask();
        let done = self.gather(asks, kept, out);
        let revealed =
            done.and_then(|()| if self.protect.is_empty() { Ok(false) } else { self.reveal(kept, out) });
        let revealed = match revealed {
            Ok(revealed) => revealed,
            Err(e) => {
                // The caller may not have dealt with the pages found: ask again.
                self.quiet_at = None;
                return Err(e);
            }
        };
        if unsettled > 0 {
            // The psync before this one failed half-way: its pages are still to be settled.
            out.extend_from_slice(&self.pending[..unsettled]);
            range::normalise(out, kept);
        }
        if !revealed {
            self.reclaim.stop(timer, || out[kept..].iter().map(|run| run.count).sum());
        }
        Ok(())
    }

    /// Reports known chunks and, if it `asks`, those between them, in order.
    #[inline]
    fn gather(&mut self, asks: bool, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let mut at = 0;
        let mut asking = 0;
        if asks {
            self.sparse = (0, 0);
        }
        for index in 0..=self.chunks.runs().len() {
            let known = self.chunks.runs().get(index).copied();
            let (from, to) =
                known.map_or((self.pages, self.pages), |run| (run.start as usize, run.end() as usize));
            if asks && at < from {
                let started = (self.pages > FEW_PAGES).then(Instant::now);
                self.existing(at, from, kept, out)?;
                asking += started.map_or(0, |started| started.elapsed().as_nanos());
            }
            if from < to {
                self.unprotected(from, to, kept, out)?;
            }
            at = to;
        }
        if asks {
            self.dear = asking > DEAR_NS;
        }
        Ok(())
    }

    /// Whether a page may have come to exist in a new chunk since they were last asked.
    #[inline]
    fn must_ask(&mut self) -> bool {
        if !self.dear {
            self.quiet_at = None;
            return true;
        }
        let before = std::mem::replace(&mut self.quiet_at, faults::count().ok());
        before.is_none() || before != self.quiet_at
    }

    /// Reports unprotected pages of known chunks, and protects them if `protects`.
    #[inline]
    fn unprotected(
        &mut self,
        from: usize,
        to: usize,
        kept: usize,
        out: &mut Vec<PageRange>,
    ) -> io::Result<()> {
        let seek = if self.protects { Seek::ProtectWritten } else { Seek::Written };
        let (mut at, end) = (self.addr(from), self.addr(to));
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, seek, &mut self.regions)?;
            for region in &self.regions[..found] {
                let (first, last) = (self.page(region.start), self.page(region.end));
                range::push(out, kept, first, last);
                if self.protects {
                    self.pending.push(PageRange::new(first, last));
                }
            }
            at = reached;
        }
        Ok(())
    }

    /// Reports dirty pages of new chunks; adds them, and chunks that become known, to `protect`.
    fn existing(&mut self, from: usize, to: usize, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let (mut at, end) = (self.addr(from), self.addr(to));
        // The chunk that is being looked at, its pages that exist, and where its runs begin.
        let (mut chunk, mut pages, mut runs) = (PageRange::default(), 0, 0);
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, Seek::Existing, &mut self.regions)?;
            for index in 0..found {
                let region = self.regions[index];
                let (mut first, last) = (self.page(region.start), self.page(region.end));
                while first < last {
                    if first as u64 >= chunk.end() {
                        self.close(chunk, pages, runs);
                        (chunk, pages, runs) = (self.chunks.around(first), 0, self.pending.len());
                    }
                    let end = last.min(chunk.end() as usize);
                    pages += end - first;
                    if region.is_dirty() {
                        range::push(out, kept, first, end);
                        self.pending.push(PageRange::new(first, end));
                    }
                    first = end;
                }
            }
            at = reached;
        }
        self.close(chunk, pages, runs);
        Ok(())
    }

    /// Adds to `protect` the pages of a new chunk, of which `pages` exist: all of them, or the
    /// dirty ones, which are in `pending` from `runs` on.
    fn close(&mut self, chunk: PageRange, pages: usize, runs: usize) {
        if pages >= MANY.min(chunk.count as usize) {
            range::push(&mut self.protect, 0, chunk.start as usize, chunk.end() as usize);
            return;
        }
        self.sparse = (self.sparse.0 + pages as u64, self.sparse.1 + 1);
        for run in &self.pending[runs..] {
            range::push(&mut self.protect, 0, run.start as usize, run.end() as usize);
        }
    }

    /// Protects the pages in `protect`; chunks that are among them become known. Returns whether any did.
    fn reveal(&mut self, kept: usize, out: &mut Vec<PageRange>) -> io::Result<bool> {
        let runs = std::mem::take(&mut self.protect);
        for run in &runs {
            self.uffd.protect(self.addr(run.start as usize), run.count as usize * PAGE)?;
            if self.registers && self.chunks.cover(*run) {
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

    /// Reports stores that broke the rules and fell between question and protection: late rather
    /// than lost. Only stores make pages this process's own; those of the few pages that were
    /// settled before are reported once more.
    fn report_late(&mut self, run: PageRange, out: &mut Vec<PageRange>) -> io::Result<()> {
        let (mut at, end) = (self.addr(run.start as usize), self.addr(run.end() as usize));
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, Seek::OwnPresent, &mut self.regions)?;
            for region in &self.regions[..found] {
                let run = PageRange::new(self.page(region.start), self.page(region.end));
                out.push(run);
                self.pending.push(run);
            }
            at = reached;
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()> {
        if self.steady && unchanged.is_empty() && self.pending.is_empty() && self.hot.newest() == changed {
            return Ok(());
        }
        let mut plan = std::mem::take(&mut self.plan);
        plan.reach(changed, unchanged, &self.hot, &self.chunks, self.pages);
        self.hot.push(changed, self.pages);
        range::normalise(&mut self.pending, 0);
        let (mut late, mut regions) = (Vec::new(), std::mem::take(&mut self.regions));
        let mut calls = 0;
        let done = plan.calls(&self.chunks).try_for_each(|runs| {
            calls += 1;
            self.protect(runs, &mut regions, &mut late)
        });
        self.regions = regions;
        if done.is_ok() {
            self.chunks.know(plan.protect());
            self.protects = plan.protects(calls, self.protects);
        }
        self.steady = done.is_ok() && plan.protect().is_empty();
        self.plan = plan;
        // Pages that an error left unprotected will be reported again.
        self.pending.clear();
        self.pending.append(&mut late);
        done
    }

    /// Protects the pages of the runs that were unprotected when they were found. Other unprotected pages
    /// between them were stored to against the rules: they are reported late rather than lost.
    fn protect(
        &self,
        runs: &[PageRange],
        regions: &mut [Region],
        late: &mut Vec<PageRange>,
    ) -> io::Result<()> {
        if range::cover(&self.pending, runs) {
            return Ok(());
        }
        let rest = range::without(runs, &self.pending);
        let ([first, .., last], true) = (&rest[..], runs.len() > 1) else {
            let protect =
                |run: &PageRange| self.uffd.protect(self.addr(run.start as usize), run.count as usize * PAGE);
            return rest.iter().try_for_each(protect);
        };
        let (mut at, end) = (self.addr(first.start as usize), self.addr(last.end() as usize));
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, Seek::ProtectWritten, regions)?;
            let run = |region: &Region| PageRange::new(self.page(region.start), self.page(region.end));
            let found: Vec<PageRange> = regions[..found].iter().map(run).collect();
            late.extend(range::without(&found, &rest));
            at = reached;
        }
        Ok(())
    }

    /// Takes how long comparing so many pages took.
    #[inline]
    pub(super) fn compared(&mut self, pages: u64, took: Duration) {
        self.hot.compared(pages, took);
    }

    /// Whether the reclaim policy says that dropping every page now pays.
    pub(super) fn renewal_due(&mut self) -> io::Result<bool> {
        if !self.reclaim.is_due() {
            return Ok(false);
        }
        let mut present = self.sparse.0;
        for run in self.chunks.runs() {
            let (mut at, end) = (self.addr(run.start as usize), self.addr(run.end() as usize));
            while at < end {
                let (found, reached) = self.pagemap.scan(at, end, Seek::Present, &mut self.regions)?;
                present += self.regions[..found].iter().map(|r| (r.end - r.start) / PAGE as u64).sum::<u64>();
                at = reached;
            }
        }
        Ok(self.reclaim.decide(present, self.chunks.count(), self.sparse.1))
    }

    #[cfg(test)]
    pub(super) fn protects(&self) -> bool {
        self.protects
    }

    /// How many chunks are known.
    #[cfg(test)]
    pub(super) fn known(&self) -> u64 {
        self.chunks.count()
    }

    /// Begins anew on a mapping that was renewed.
    pub(super) fn renewed(&mut self) -> io::Result<()> {
        let pages = std::mem::take(&mut self.pages);
        self.chunks = Chunks::new(self.base);
        self.pending.clear();
        self.steady = false;
        self.dear = false;
        self.sparse = (0, 0);
        let done = self.grow(pages, false);
        self.pages = pages;
        done
    }
}
