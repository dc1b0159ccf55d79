//! State that an attachment's threads share: known spans, pages, owners. Spans become known as they
//! are met.
//!
//! Lock order: `inner`, then the guard's; never the object's own lock below them.

use super::cache::{self, Cache};
use super::class::{fewest_pages, span_pages};
use super::directory::Directory;
use super::error::{HeapError, Result, damaged};
use super::guard::Guard;
use super::layout::{CLASSES, Kind, PAGE, Use};
use super::pages::{Found, Hints, Pages, find, full};
use super::span::{self, Span};
use super::table::Table;
use super::window::Window;
use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

const LOOK: u64 = 2;

pub(super) struct Shared {
    pub(super) id: u64,
    pub(super) window: Window,
    pub(super) table: Table,
    pub(super) guard: Option<Guard>,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) hints: Hints,
    /// Ownerless spans that had free blocks; some may be taken, emptied, or another heap's since:
    /// the table tells.
    unowned: [Vec<&'static Span>; CLASSES],
    /// Emptied spans still in an inbox, unusable for another heap.
    queued: Vec<&'static Span>,
    have: [usize; CLASSES],
    pub(super) roots: Option<BTreeSet<(u64, u64)>>,
    spans: Vec<&'static Span>,
    caches: Vec<&'static Cache>,
    idle: Vec<&'static Cache>,
    unseen: u64,
    closed: bool,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Shared {
    pub(super) fn new(window: Window, reach: u64, guard: Option<Guard>) -> Result<Shared> {
        let unseen = Directory::open(&window)?.frontier();
        let reach = reach.max(window.pages()) as usize;
        let inner = Inner {
            hints: Hints::default(),
            unowned: [const { Vec::new() }; CLASSES],
            have: [0; CLASSES],
            roots: None,
            spans: Vec::new(),
            caches: Vec::new(),
            idle: Vec::new(),
            queued: Vec::new(),
            unseen,
            closed: false,
        };
        Ok(Shared {
            id: NEXT_ID.fetch_add(1, Relaxed),
            window,
            table: Table::blank(reach),
            guard,
            inner: Mutex::new(inner),
        })
    }

    pub(super) fn of_copies(window: Window) -> Result<Shared> {
        let mut shared = Shared::new(window, 0, None)?;
        let inner = shared.inner.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        (inner.unseen, inner.roots) = (0, Some(BTreeSet::new()));
        Ok(shared)
    }

    fn has(&self, span: &Span) -> bool {
        self.table.get(span.page() as usize).is_some_and(|slot| slot.is(span))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn is_slow(&self) -> bool {
        self.guard.is_some() || self.window.is_explicit()
    }

    pub(super) fn join(&self) -> &'static Cache {
        let mut inner = self.lock();
        if let Some(cache) = inner.idle.pop() {
            return cache;
        }
        let cache = cache::SPARE.take(Cache::blank);
        inner.caches.push(cache);
        cache
    }

    pub(super) fn part(&self, cache: &'static Cache) {
        let mut inner = self.lock();
        if inner.closed {
            return;
        }
        cache.clear();
        let mine: Vec<_> = inner.spans.iter().copied().filter(|span| span.owner.is(cache)).collect();
        for span in mine {
            span.disown();
            inner.offer(span);
        }
        inner.idle.push(cache);
    }

    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.idle.clear();
        // First: spans in an inbox cannot go to another heap.
        inner.caches.iter().for_each(|cache| cache.clear());
        for span in std::mem::take(&mut inner.spans) {
            inner.forget(self, span);
        }
        std::mem::take(&mut inner.queued).into_iter().for_each(|span| span::SPARE.give(span));
        std::mem::take(&mut inner.caches).into_iter().for_each(|cache| cache::SPARE.give(cache));
    }

    pub(super) fn find(&self, address: usize) -> Result<Option<Found>> {
        let Some(offset) = self.window.offset_of(address) else { return Ok(None) };
        let directory = Directory::open(&self.window)?;
        if offset / PAGE >= directory.pages {
            return Ok(None);
        }
        find(&directory, offset / PAGE)
    }
}

impl Inner {
    pub(super) fn pages<'a>(&mut self, shared: &'a Shared) -> Result<Pages<'a, '_>> {
        Ok(Pages { directory: Directory::open(&shared.window)?, hints: &mut self.hints })
    }

    pub(super) fn known(
        &mut self,
        shared: &Shared,
        page: u64,
        pages: u64,
        class: usize,
    ) -> Result<&'static Span> {
        self.meet(shared, page, pages, class, false)
    }

    fn meet(
        &mut self,
        shared: &Shared,
        page: u64,
        pages: u64,
        class: usize,
        new: bool,
    ) -> Result<&'static Span> {
        if let Some(span) = shared.table[page as usize].get()
            && (span.page(), span.pages(), span.class()) == (page, pages, class)
        {
            return Ok(span);
        }
        if shared.table[page as usize..(page + pages) as usize].iter().any(|slot| slot.get().is_some()) {
            return damaged(page * PAGE, "this span overlaps another");
        }
        let span = Span::adopt(&shared.window, page, pages, class, new)?;
        shared.window.mark_dirty(page * PAGE, PAGE as usize);
        span.index.store(self.spans.len(), Relaxed);
        self.spans.push(span);
        for page in page..page + pages {
            shared.table[page as usize].set(Some(span));
        }
        Ok(span)
    }

    fn offer(&mut self, span: &'static Span) {
        if span.has_free() && !span.listed.swap(true, Relaxed) {
            self.unowned[span.class()].push(span);
        }
    }

    pub(super) fn obtain(&mut self, shared: &Shared, cache: &'static Cache, class: usize) -> Result<()> {
        let span = match self.unowned_span(shared, class)? {
            Some(span) => span,
            None => {
                self.look(shared, LOOK)?;
                match self.unowned_span(shared, class)? {
                    Some(span) => span,
                    None => self.new_span(shared, class)?,
                }
            }
        };
        span.own(cache);
        self.idle.iter().for_each(|cache| cache.open_inbox(&mut |_| {}));
        let header = Directory::open(&shared.window)?.header;
        header.recent[class].store(span.page() as u32, Relaxed);
        shared.window.mark_dirty(0, PAGE as usize);
        cache.enter(span);
        Ok(())
    }

    fn unowned_span(&mut self, shared: &Shared, class: usize) -> Result<Option<&'static Span>> {
        while let Some(span) = self.unowned[class].pop() {
            if !shared.has(span) {
                continue;
            }
            let listed = span.listed.swap(false, Relaxed);
            let fit = span.live.load(Relaxed) && span.class() == class && span.owner.get().is_none();
            if listed && fit {
                span.survey();
                if span.has_free() {
                    return Ok(Some(span));
                }
            }
        }
        let directory = Directory::open(&shared.window)?;
        let page = u64::from(directory.header.recent[class].load(Relaxed));
        if page == 0 || page >= directory.pages || shared.table[page as usize].get().is_some() {
            return Ok(None);
        }
        match find(&directory, page)? {
            Some(Found { page: at, entry }) if (at, entry.kind) == (page, Kind::Span) => {
                if usize::from(entry.class) != class {
                    return Ok(None);
                }
                let span = self.known(shared, page, entry.pages, class)?;
                Ok(span.has_free().then_some(span))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn look(&mut self, shared: &Shared, chunks: u64) -> Result<()> {
        for _ in 0..chunks.min(self.unseen) {
            let directory = Directory::open(&shared.window)?;
            let number = directory.header.cursor.load(Relaxed) % directory.frontier();
            if let Use::Pages { .. } = directory.get(number)? {
                let chunk = directory.chunk(number)?;
                for index in 0..chunk.len {
                    let Some(entry) = chunk.entry(index)? else { continue };
                    let page = chunk.page(index);
                    if entry.kind == Kind::Span && shared.table[page as usize].get().is_none() {
                        let span = self.known(shared, page, entry.pages, usize::from(entry.class))?;
                        self.offer(span);
                    }
                }
            }
            directory.header.cursor.store((number + 1) % directory.frontier(), Relaxed);
            shared.window.mark_dirty(0, PAGE as usize);
            self.unseen -= 1;
        }
        Ok(())
    }

    fn new_span(&mut self, shared: &Shared, class: usize) -> Result<&'static Span> {
        // The last wastes more, for a nearly full heap.
        let lengths = [span_pages(class, self.have[class]), span_pages(class, 0), fewest_pages(class)];
        let mut reclaimed = false;
        let (run, count) = loop {
            let mut pages = self.pages(shared)?;
            let mut found = None;
            for count in lengths {
                if found.is_none() {
                    found = pages.allocate(count, 1, Kind::Span, class as u8)?.map(|run| (run, count));
                }
            }
            if let Some(found) = found {
                break found;
            }
            let error = full(&pages, super::class::size_of_class(class));
            if reclaimed {
                return Err(error);
            }
            self.reclaim(shared)?;
            if let Some(span) = self.unowned_span(shared, class)? {
                return Ok(span);
            }
            reclaimed = true;
        };
        self.have[class] += 1;
        if shared.table[run.page as usize].get().is_some() {
            return damaged(run.page * PAGE, "the pages of a span in use are called free");
        }
        Span::format(&shared.window, run.page, count, class)?;
        self.meet(shared, run.page, count, class, true)
    }

    pub(super) fn reclaim(&mut self, shared: &Shared) -> Result<()> {
        self.look(shared, u64::MAX)?;
        for index in (0..self.spans.len()).rev() {
            let span = self.spans[index];
            if span.owner.get().is_some() {
                continue;
            }
            span.survey();
            if span.is_empty() { self.release(shared, span)? } else { self.offer(span) }
        }
        Ok(())
    }

    pub(super) fn release(&mut self, shared: &Shared, span: &'static Span) -> Result<()> {
        let (page, pages) = (span.page(), span.pages());
        for page in page..page + pages {
            shared.table[page as usize].set(None);
        }
        let index = span.index.load(Relaxed);
        self.spans.swap_remove(index);
        if let Some(moved) = self.spans.get(index) {
            moved.index.store(index, Relaxed);
        }
        self.forget(shared, span);
        self.pages(shared)?.free(page, Kind::Span)
    }

    fn forget(&mut self, shared: &Shared, span: &'static Span) {
        if let Some(guard) = &shared.guard {
            guard.forget(span.page() * PAGE..(span.page() + span.pages()) * PAGE);
        }
        span.have(None);
        span.live.store(false, Relaxed);
        span.listed.store(false, Relaxed);
        if span.pending.load(Relaxed) != 0 {
            self.queued.push(span);
        } else {
            span::SPARE.give(span);
        }
    }

    pub(super) fn run(&mut self, shared: &Shared, bytes: usize, align: u64) -> Result<super::pages::Run> {
        let count = bytes.div_ceil(PAGE as usize) as u64;
        if let Some(run) = self.pages(shared)?.allocate(count, align, Kind::Run, 0)? {
            return Ok(run);
        }
        self.reclaim(shared)?;
        let mut pages = self.pages(shared)?;
        match pages.allocate(count, align, Kind::Run, 0)? {
            Some(run) => Ok(run),
            None if align > 1 && pages.largest()? >= count => Err(HeapError::Alignment {
                align: (align * PAGE) as usize,
                why: "no free piece of this heap has such an address",
            }),
            None => Err(full(&pages, bytes)),
        }
    }

    pub(super) fn extend(&mut self, shared: &Shared) -> Result<()> {
        Directory::open(&shared.window)?.extend()?;
        self.hints = Hints::default();
        Ok(())
    }
}
