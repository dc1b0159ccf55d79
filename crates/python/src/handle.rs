//! Something of the library that Python code has open, one thread at a time, and the count of users
//! of its memory.
//!
//! Invariants:
//! 1. `views` counts users that may use memory of it without the lock: exported buffers. It grows
//!    only under the lock, while `open` is `Some`.
//! 2. `open` becomes `None` only under the lock, while `views` is 0, or once the last reference to
//!    the handle is gone: each user that `views` counts holds one. Calls that take memory away
//!    otherwise go through [`unused`](Handle::unused).
//!
//! Locks: the lock is awaited without the GIL, and a thread that has it never waits for the GIL.

use crate::error::{closed, exception, forked, in_use};
use crate::patience;
use crate::process;
use indelible::Result;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

pub(crate) struct Handle<T> {
    open: Mutex<Option<T>>,
    views: AtomicUsize,
    /// To be closed with the last view, and not used any more.
    closing: AtomicBool,
    what: String,
    process: u32,
}

impl<T: Send> Handle<T> {
    pub(crate) fn new(what: String, open: T) -> Self {
        Handle {
            open: Mutex::new(Some(open)),
            views: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            what,
            process: process::generation(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False in a fork, where another thread may have had the lock when the process was copied.
    fn is_ours(&self) -> bool {
        self.process == process::generation()
    }

    fn usable(&self) -> bool {
        !self.closing.load(Ordering::Acquire)
    }

    /// Runs `f` without the GIL, again after each slice of a wait.
    pub(crate) fn with<R: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        if !self.is_ours() {
            return Err(forked(py, operation, &self.what));
        }
        let used = patience::locked(py, &self.open, |open| match open.as_mut() {
            Some(open) if self.usable() => f(open).map(Some),
            _ => Ok(None),
        })?;
        used.ok_or_else(|| closed(py, operation, &self.what))
    }

    /// As [`with`](Handle::with), for an `f` that the end of a wait must not interrupt.
    pub(crate) fn once<R: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        f: impl FnOnce(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        if !self.is_ours() {
            return Err(forked(py, operation, &self.what));
        }
        let used = py.detach(|| {
            let mut open = self.lock();
            open.as_mut().filter(|_| self.usable()).map(f)
        });
        match used {
            Some(result) => result.map_err(|error| exception(py, &error)),
            None => Err(closed(py, operation, &self.what)),
        }
    }

    /// As [`with`](Handle::with); counts a view of the bytes that `f` returns.
    pub(crate) fn view<R: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        self.with(py, operation, |open| {
            let seen = f(open)?;
            self.views.fetch_add(1, Ordering::Relaxed);
            Ok(seen)
        })
    }

    /// As [`with`](Handle::with), without views.
    pub(crate) fn unused<R: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&mut T) -> Result<R> + Send,
    ) -> PyResult<R> {
        let done = self.with(py, operation, |open| match self.views() {
            0 => f(open).map(Ok),
            views => Ok(Err(views)),
        })?;
        done.map_err(|views| in_use(operation, &self.what, views))
    }

    /// As [`with`](Handle::with), with a second handle, which is locked second.
    pub(crate) fn with_other<U: Send, R: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        other: &Handle<U>,
        mut f: impl FnMut(&mut T, &mut U) -> Result<R> + Send,
    ) -> PyResult<R> {
        for (is_ours, what) in [(self.is_ours(), &self.what), (other.is_ours(), &other.what)] {
            if !is_ours {
                return Err(forked(py, operation, what));
            }
        }
        let used = patience::locked(py, &self.open, |open| {
            let mut of_other = other.lock();
            let Some(open) = open.as_mut().filter(|_| self.usable()) else { return Ok(Err(&self.what)) };
            let Some(of_other) = of_other.as_mut().filter(|_| other.usable()) else {
                return Ok(Err(&other.what));
            };
            f(open, of_other).map(Ok)
        })?;
        used.map_err(|what| closed(py, operation, what))
    }

    /// Runs `f`, which waits as long as it is told, until it returns something, time is over, or a
    /// signal handler raises.
    pub(crate) fn wait<R: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        timeout: Option<Duration>,
        f: impl Fn(&mut T, Duration) -> Result<Option<R>> + Sync,
    ) -> PyResult<Option<R>> {
        patience::wait(py, timeout, |left| self.with(py, operation, |open| f(open, left)))
    }

    /// Takes the content of a handle without references.
    pub(crate) fn take(&self) -> Option<T> {
        if self.is_ours() && self.usable() { self.lock().take() } else { None }
    }

    pub(crate) fn views(&self) -> usize {
        self.views.load(Ordering::Acquire)
    }

    pub(crate) fn forget_view(&self) {
        if self.views.fetch_sub(1, Ordering::AcqRel) == 1 && !self.usable() && self.is_ours() {
            let mut open = self.lock();
            if self.views() == 0 {
                open.take();
            }
        }
    }

    /// Whether it was closed, or belongs to another process.
    pub(crate) fn is_closed(&self) -> bool {
        match self.open.try_lock() {
            _ if !self.is_ours() || !self.usable() => true,
            Ok(open) => open.is_none(),
            Err(TryLockError::Poisoned(open)) => open.into_inner().is_none(),
            // Another thread uses it.
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// Ends it by `end`, unless there are views; again it does nothing. `table` waits for the
    /// tables that `end` locks: until then a signal handler may raise, and the handle stays open.
    pub(crate) fn close<R: Send>(
        &self,
        py: Python<'_>,
        table: impl Fn() -> Result<()> + Send + Sync,
        end: impl FnOnce(T) -> Result<R> + Send,
    ) -> PyResult<Option<R>> {
        if !self.is_ours() {
            return Err(forked(py, "close", &self.what));
        }
        let ready = |open: &mut Option<T>| match open {
            Some(_) if self.views() == 0 => table(),
            _ => Ok(()),
        };
        let ended = patience::once_ready(py, &self.open, ready, |open| match self.views() {
            0 => Ok(open.take().map(end).transpose()),
            views => Err(views),
        })?;
        match ended {
            Ok(ended) => ended.map_err(|error| exception(py, &error)),
            Err(views) => Err(in_use("close", &self.what, views)),
        }
    }

    /// As [`close`](Handle::close), for content that ends when dropped.
    pub(crate) fn end(&self, py: Python<'_>, table: impl Fn() -> Result<()> + Send + Sync) -> PyResult<()> {
        self.close(py, table, |open| {
            drop(open);
            Ok(())
        })?;
        Ok(())
    }

    /// Ends a `with` block by an exception: closes with the last view, and refuses all other calls
    /// from now on.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        if !self.is_ours() {
            return Err(forked(py, "close", &self.what));
        }
        // Counted as a view, so that the last view is forgotten after this.
        self.views.fetch_add(1, Ordering::AcqRel);
        self.closing.store(true, Ordering::Release);
        py.detach(|| self.forget_view());
        Ok(())
    }
}
