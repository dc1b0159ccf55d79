//! One served range, and the claims of threads that fill its pages.
//!
//! Invariant: only the claiming thread reads a page from the source and installs it. So no stale
//! page is installed after another thread filled, stored to, psynced and dropped it.

use std::ops;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use super::BATCH;
use super::evict::Resident;
use super::prediction::Prediction;
use super::source::{PageError, PageSource};
use crate::sys::PAGE;
use crate::sys::uffd::Watch;

pub(super) struct Range {
    pub(super) base: usize,
    len: AtomicUsize,
    ahead: usize,
    budget: AtomicUsize,
    pub(super) protect: bool,
    pub(super) secret: bool,
    pub(super) prediction: Option<Prediction>,
    pub(super) resident: Option<Resident>,
    pub(super) frozen: bool,
    source: RwLock<Option<Arc<dyn PageSource>>>,
    claims: Mutex<Claims>,
    over: Condvar,
    failure: OnceLock<Arc<PageError>>,
}

#[derive(Default)]
struct Claims {
    taken: Vec<Claim>,
    closed: bool,
    waiters: usize,
}

struct Claim {
    pages: ops::Range<usize>,
    waiting: Vec<usize>,
}

impl Claims {
    fn of(&mut self, page: usize) -> Option<&mut Claim> {
        self.taken.iter_mut().find(|claim| claim.pages.contains(&page))
    }

    fn take(&mut self, pages: ops::Range<usize>) -> ops::Range<usize> {
        let behind = self.taken.iter().map(|claim| claim.pages.start).filter(|start| *start > pages.start);
        let pages = pages.start..behind.fold(pages.end, usize::min);
        self.taken.push(Claim { pages: pages.clone(), waiting: Vec::new() });
        pages
    }
}

impl Range {
    pub(super) fn new(params: super::ServeParams) -> Range {
        Range {
            base: params.base,
            len: AtomicUsize::new(params.len),
            ahead: params.ahead.min(BATCH - 1),
            budget: AtomicUsize::new(params.budget),
            protect: params.protect,
            secret: params.secret,
            prediction: params.prediction.map(Prediction::new),
            resident: params.limit.map(Resident::new),
            frozen: params.frozen,
            source: RwLock::new(Some(params.source)),
            claims: Mutex::default(),
            over: Condvar::new(),
            failure: OnceLock::new(),
        }
    }

    pub(super) fn watch(&self) -> Watch {
        if self.protect { Watch::MissingAndWrites } else { Watch::Missing }
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    pub(super) fn pages(&self) -> usize {
        self.len() / PAGE
    }

    pub(super) fn addr(&self, page: usize) -> usize {
        self.base + page * PAGE
    }

    pub(super) fn set_len(&self, len: usize) {
        self.len.store(len, Ordering::Release);
    }

    pub(super) fn failure(&self) -> Option<Arc<PageError>> {
        self.failure.get().cloned()
    }

    pub(super) fn fail(&self, error: PageError) {
        let _ = self.failure.set(Arc::new(error));
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'c>(&'c self, mut claims: MutexGuard<'c, Claims>) -> MutexGuard<'c, Claims> {
        claims.waiters += 1;
        let mut claims = self.over.wait(claims).unwrap_or_else(PoisonError::into_inner);
        claims.waiters -= 1;
        claims
    }

    pub(super) fn claim_or_leave(&self, addr: usize) -> Option<ops::Range<usize>> {
        let page = (addr - self.base) / PAGE;
        let mut claims = self.claims();
        if claims.closed {
            return None;
        }
        if let Some(claim) = claims.of(page) {
            claim.waiting.push(addr);
            return None;
        }
        let end = (page + 1 + self.ahead).min(self.pages());
        Some(claims.take(page..end.max(page + 1)))
    }

    pub(super) fn claim(&self, pages: ops::Range<usize>) -> Option<ops::Range<usize>> {
        let mut claims = self.claims();
        while claims.of(pages.start).is_some() {
            claims = self.wait(claims);
        }
        (!claims.closed).then(|| claims.take(pages))
    }

    pub(super) fn claim_free(&self, pages: ops::Range<usize>) -> Option<ops::Range<usize>> {
        let mut claims = self.claims();
        let first = pages.clone().find(|page| claims.of(*page).is_none())?;
        (!claims.closed).then(|| claims.take(first..pages.end))
    }

    pub(super) fn end(&self, pages: &ops::Range<usize>) -> Vec<usize> {
        let mut claims = self.claims();
        let at = claims.taken.iter().position(|claim| claim.pages == *pages);
        let ended = at.map(|at| claims.taken.swap_remove(at));
        if claims.waiters > 0 {
            self.over.notify_all();
        }
        ended.map_or(Vec::new(), |claim| claim.waiting)
    }

    pub(super) fn close(&self) {
        let mut claims = self.claims();
        claims.closed = true;
        while !claims.taken.is_empty() {
            claims = self.wait(claims);
        }
        // Queues may keep the range alive, and the source holds the pool's file open.
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn reserve(&self, wanted: usize) -> usize {
        let taken = |budget: usize| Some(budget - wanted.min(budget));
        let before = self.budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken);
        wanted.min(before.unwrap_or(0))
    }

    pub(super) fn give_back(&self, pages: usize) {
        self.budget.fetch_add(pages, Ordering::Relaxed);
    }

    pub(super) fn read_from(
        &self,
        claimed: &ops::Range<usize>,
        buffer: &mut [u8],
    ) -> Result<(usize, usize), PageError> {
        let first = claimed.start;
        let paid = self.reserve(claimed.len() - 1);
        let got = match self.read(first, &mut buffer[..(1 + paid) * PAGE]) {
            Ok(()) => Ok(1 + paid),
            Err(error) if error.page > first => Ok((error.page - first).min(1 + paid)),
            // A source that panicked did not say at which page.
            Err(_) => self.read(first, &mut buffer[..PAGE]).map(|()| 1),
        };
        got.map(|count| (count, paid)).inspect_err(|_| self.give_back(paid))
    }

    fn source(&self) -> Option<Arc<dyn PageSource>> {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_slow(&self) -> bool {
        self.source().is_some_and(|source| source.is_slow())
    }

    pub(super) fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        let gone = || PageError { page: first, source: "the object is no longer attached".into() };
        let source = self.source().ok_or_else(gone)?;
        // A panic must not end the thread that every object depends on.
        catch_unwind(AssertUnwindSafe(|| source.read(first, bytes)))
            .unwrap_or_else(|_| Err(PageError { page: first, source: "the source panicked".into() }))
    }
}
