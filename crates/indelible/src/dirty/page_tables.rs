//! Scans and write protection of a watched range, by page number.

use super::range::PageRange;
use crate::sys::PAGE;
use crate::sys::pagemap::{Pagemap, Region, Seek};
use crate::sys::uffd::{Uffd, Watch};
use std::io;

const REGIONS: usize = 64;

pub(super) struct PageTables {
    base: usize,
    uffd: &'static Uffd,
    pagemap: &'static Pagemap,
    regions: Box<[Region]>,
}

impl PageTables {
    pub(super) fn new(base: usize, uffd: &'static Uffd) -> io::Result<PageTables> {
        let regions = vec![Region::default(); REGIONS].into();
        Ok(PageTables { base, uffd, pagemap: Pagemap::get()?, regions })
    }

    fn addr(&self, page: u64) -> usize {
        self.base + page as usize * PAGE
    }

    fn run(&self, region: &Region) -> PageRange {
        let page = |addr: u64| (addr as usize - self.base) / PAGE;
        PageRange::new(page(region.start), page(region.end))
    }

    pub(super) fn register(&self, pages: PageRange) -> io::Result<()> {
        self.uffd.register(self.addr(pages.start), pages.count as usize * PAGE, Watch::Writes)
    }

    pub(super) fn protect(&self, pages: PageRange) -> io::Result<()> {
        self.uffd.protect(self.addr(pages.start), pages.count as usize * PAGE)
    }

    #[inline]
    pub(super) fn scan(
        &mut self,
        pages: PageRange,
        seek: Seek,
        mut each: impl FnMut(PageRange, bool),
    ) -> io::Result<()> {
        let (mut at, end) = (self.addr(pages.start), self.addr(pages.end()));
        while at < end {
            let (found, reached) = self.pagemap.scan(at, end, seek, &mut self.regions)?;
            self.regions[..found].iter().for_each(|region| each(self.run(region), region.is_dirty()));
            at = reached;
        }
        Ok(())
    }
}
