//! One served range, and whose turn it is to fill its pages.
//!
//! Invariant: pages are read from the source and put in place by the one thread whose turn it is. So no page is installed
//! that was read before another thread had the same page installed, stored to it, psynced it and dropped it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::BATCH;
use super::source::{PageError, PageSource};
use crate::sys::PAGE;
use crate::sys::uffd::Watch;

/// One served range.
pub(super) struct Range {
    pub(super) base: usize,
    len: AtomicUsize,
    ahead: usize,
    /// Pages that may still be filled before they are touched. Only the thread whose turn it is changes it.
    budget: AtomicUsize,
    pub(super) protect: bool,
    source: Arc<dyn PageSource>,
    turn: Mutex<Turn>,
    over: Condvar,
    failure: OnceLock<Arc<PageError>>,
}

#[derive(Default)]
struct Turn {
    taken: bool,
    /// The range is no longer served.
    closed: bool,
    /// Faults that came meanwhile, for the thread whose turn it is.
    waiting: Vec<usize>,
}

impl Range {
    pub(super) fn new(params: super::ServeParams) -> Range {
        Range {
            base: params.base,
            len: AtomicUsize::new(params.len),
            ahead: params.ahead.min(BATCH - 1),
            budget: AtomicUsize::new(params.budget),
            protect: params.protect,
            source: params.source,
            turn: Mutex::default(),
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

    pub(super) fn set_len(&self, len: usize) {
        self.len.store(len, Ordering::Release);
    }

    pub(super) fn failure(&self) -> Option<Arc<PageError>> {
        self.failure.get().cloned()
    }

    /// Keeps the first failure: it explains the others.
    pub(super) fn fail(&self, error: PageError) {
        let _ = self.failure.set(Arc::new(error));
    }

    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the turn, to answer the fault at `addr`. Never waits: while another thread has it, that one answers.
    pub(super) fn take_or_leave(&self, addr: usize) -> bool {
        let mut turn = self.turn();
        if turn.closed {
            return false;
        }
        if turn.taken {
            turn.waiting.push(addr);
            return false;
        }
        turn.taken = true;
        true
    }

    /// Takes the turn, to fill pages ahead of faults. `false`: the range is no longer served.
    pub(super) fn take(&self) -> bool {
        let mut turn = self.turn();
        while turn.taken {
            turn = self.over.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        turn.taken = !turn.closed;
        turn.taken
    }

    /// A fault that came during this turn; `None`: the turn is over.
    pub(super) fn next(&self) -> Option<usize> {
        let mut turn = self.turn();
        let next = turn.waiting.pop();
        if next.is_none() {
            turn.taken = false;
            self.over.notify_all();
        }
        next
    }

    /// Waits until no page is being filled, and has none filled from now on.
    pub(super) fn close(&self) {
        let mut turn = self.turn();
        turn.closed = true;
        while turn.taken {
            turn = self.over.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Pages that may be filled ahead, of `wanted`.
    pub(super) fn allowed(&self, wanted: usize) -> usize {
        wanted.min(self.budget.load(Ordering::Relaxed))
    }

    /// Counts pages that were filled ahead.
    pub(super) fn filled_ahead(&self, pages: usize) {
        self.budget.store(self.budget.load(Ordering::Relaxed).saturating_sub(pages), Ordering::Relaxed);
    }

    /// Reads the page at `addr` and those ahead of it; returns how many in a row it has got.
    pub(super) fn read_from(&self, addr: usize, buffer: &mut [u8]) -> Result<usize, PageError> {
        let first = (addr - self.base) / PAGE;
        let behind = (self.len() / PAGE).saturating_sub(first + 1);
        let count = 1 + self.allowed(self.ahead.min(behind));
        match self.read(first, &mut buffer[..count * PAGE]) {
            Ok(()) => Ok(count),
            Err(error) if error.page > first => Ok((error.page - first).min(count)),
            // A source that panicked did not say at which page.
            Err(_) => self.read(first, &mut buffer[..PAGE]).map(|()| 1),
        }
    }

    /// See [`PageSource::is_slow`].
    pub(super) fn is_slow(&self) -> bool {
        self.source.is_slow()
    }

    /// As [`PageSource::read`].
    pub(super) fn read(&self, first: usize, bytes: &mut [u8]) -> Result<(), PageError> {
        // A panic must not end the thread that every object depends on.
        catch_unwind(AssertUnwindSafe(|| self.source.read(first, bytes)))
            .unwrap_or_else(|_| Err(PageError { page: first, source: "the source panicked".into() }))
    }
}
