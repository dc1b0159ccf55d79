//! Rung 1: userfaultfd write protection that the kernel lifts by itself, and `PAGEMAP_SCAN`.
//!
//! What a scan for unprotected pages names is not only what was stored to: also pages that were
//! only read (they were never protected), and absent pages of page tables that exist. The kernel
//! tells them apart twenty times slower, so a page is asked about once and protected then; from
//! there on it is named only if it was stored to.
//!
//! Invariants, with `own` meaning "known to be this process's copy":
//! 1. A page that differs from the primary is unprotected, or in `pending`. An unprotected page is
//!    named by the next scan; `pending` is what was protected anew and not settled since.
//! 2. A page in `own` has been stored to since the mapping was made or renewed. It is reported
//!    whenever a scan names it, without asking, and stays unprotected.
//! 3. A page is protected first and asked about second, so a store in between is noticed.
//! 4. A page in `idle` was found unchanged by the last settle that mentioned it.

use std::io;

use super::bitmap::Bits;
use super::range::{self, PageRange};
use super::rent::Rent;
use crate::sys::PAGE;
use crate::sys::pagemap::{Pagemap, Region, Seek};
use crate::sys::uffd::{Uffd, Watch};

/// Runs that one pass of a scan may return. The kernel allocates as many for each call.
const REGIONS: usize = 64;
/// More unknown runs than this in one region are asked about together.
const RUNS_APART: usize = 4;

/// Whose descriptor watches the range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchedBy {
    /// This tracker registers the range, now and after a renewal.
    Tracker,
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
    own: Bits,
    idle: Bits,
    pending: Vec<PageRange>,
    rent: Rent,
}

impl WpAsync {
    /// `protect`: the pages are filled already and equal the primary.
    pub(super) fn new(base: usize, pages: usize, by: WatchedBy, protect: bool) -> io::Result<WpAsync> {
        let (uffd, registers) = match by {
            WatchedBy::Tracker => (Uffd::wp_async()?, true),
            WatchedBy::Service(uffd) => (uffd, false),
        };
        let mut this = WpAsync {
            base,
            pages: 0,
            uffd,
            registers,
            pagemap: Pagemap::get()?,
            regions: vec![Region::default(); REGIONS].into(),
            own: Bits::new(0),
            idle: Bits::new(0),
            pending: Vec::new(),
            rent: Rent::default(),
        };
        this.grow(pages, protect)?;
        Ok(this)
    }

    pub(super) fn grow(&mut self, pages: usize, protect: bool) -> io::Result<()> {
        let (addr, len) = (self.base + self.pages * PAGE, (pages - self.pages) * PAGE);
        if self.registers {
            self.uffd.register(addr, len, Watch::Writes)?;
        }
        if protect {
            self.uffd.protect(addr, len)?;
        }
        self.own.grow(pages);
        self.idle.grow(pages);
        self.pages = pages;
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
        let timer = self.rent.start(self.pages);
        let mut at = self.base;
        let end = self.addr(self.pages);
        // Runs of pages asked about may lie before runs already reported only if the kernel
        // returned regions out of order, which it does not.
        let unsettled = self.pending.len();
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, Seek::Written, &mut self.regions)?;
            for index in 0..found {
                let region = self.regions[index];
                self.sort(self.page(region.start), self.page(region.end), kept, out)?;
            }
            at = reached;
        }
        if unsettled > 0 {
            // The psync before this one failed half-way: what it collected is still to be done.
            out.extend_from_slice(&self.pending[..unsettled]);
            range::normalise(out, kept);
        }
        self.rent.stop(timer, || out[kept..].iter().map(|run| run.count).sum());
        Ok(())
    }

    /// Reports the known pages of an unprotected region at once and asks about the others.
    #[inline]
    fn sort(&mut self, start: usize, end: usize, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let mut at = start;
        let mut asked = 0;
        while at < end {
            let known = self.own.get(at);
            let mut next = self.own.run_end(at, end);
            if known {
                range::push(out, kept, at, next);
            } else {
                asked += 1;
                if asked > RUNS_APART {
                    next = end;
                }
                self.ask(at, next, kept, out)?;
            }
            at = next;
        }
        Ok(())
    }

    /// Protects unprotected pages and reports those that are this process's own.
    #[cold]
    fn ask(&mut self, start: usize, end: usize, kept: usize, out: &mut Vec<PageRange>) -> io::Result<()> {
        let (mut at, to) = (self.addr(start), self.addr(end));
        // An error between here and the report must not lose what was protected.
        self.pending.push(PageRange::new(start, end));
        self.uffd.protect(at, to - at)?;
        self.pending.pop();
        let mut found = [Region::default(); 16];
        while at < to {
            let (n, reached) = match self.pagemap.scan(at, to, Seek::Own, &mut found) {
                Ok(done) => done,
                Err(e) => {
                    self.pending.push(PageRange::new(self.page(at as u64), end));
                    return Err(e);
                }
            };
            for region in &found[..n] {
                let (first, last) = (self.page(region.start), self.page(region.end));
                for page in first..last {
                    self.own.set(page);
                }
                range::push(&mut self.pending, 0, first, last);
                range::push(out, kept, first, last);
            }
            at = reached;
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, changed: &[PageRange], unchanged: &[PageRange]) -> io::Result<()> {
        for run in changed {
            for page in run.within(self.pages) {
                self.idle.clear(page);
            }
        }
        for run in unchanged {
            self.rest(run.within(self.pages))?;
        }
        self.pending.clear();
        Ok(())
    }

    /// Protects what was unchanged twice in a row; remembers what was unchanged once.
    fn rest(&mut self, pages: std::ops::Range<usize>) -> io::Result<()> {
        let mut at = pages.start;
        while at < pages.end {
            let next = self.idle.run_end(at, pages.end);
            let again = self.idle.get(at);
            if again {
                self.uffd.protect(self.addr(at), (next - at) * PAGE)?;
            }
            for page in at..next {
                if again { self.idle.clear(page) } else { self.idle.set(page) }
            }
            at = next;
        }
        Ok(())
    }

    /// Whether dropping every page costs less than scans have cost beyond what they had to.
    pub(super) fn renewal_due(&mut self) -> io::Result<bool> {
        if !self.rent.is_due() {
            return Ok(false);
        }
        let (mut at, end) = (self.base, self.addr(self.pages));
        let mut present = 0;
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, Seek::Present, &mut self.regions)?;
            present += self.regions[..found].iter().map(|r| (r.end - r.start) / PAGE as u64).sum::<u64>();
            at = reached;
        }
        Ok(self.rent.decide(present))
    }

    /// Begins anew on a mapping that was renewed.
    pub(super) fn renewed(&mut self) -> io::Result<()> {
        let pages = std::mem::take(&mut self.pages);
        self.own = Bits::new(pages);
        self.idle = Bits::new(pages);
        self.pending.clear();
        self.rent = Rent::default();
        let done = self.grow(pages, false);
        self.pages = pages;
        done
    }
}
