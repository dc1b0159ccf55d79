//! An attached object as Python has it, and the count of users of its memory.
//!
//! Invariants:
//! 1. While `held` is `Some` and `views` is not 0, the object's range is mapped, at one address, at
//!    least as long as it ever was: also after a growth that could not be finished, when the object
//!    refuses all further use. While `views` is 0, a reader may be refreshed: it has other bytes
//!    then, or no longer any.
//! 2. `views` counts users that may use the memory without holding a reference to `held`: exported
//!    buffers and blocks. It grows only under the lock, while `held` is `Some`.
//! 3. `held` becomes `None`, or is refreshed, only under the lock, while `views` is 0, or once the
//!    last reference to the attachment is gone: each user that `views` counts holds one.
//!
//! Locks: the lock is awaited without the GIL, and a thread that has it never waits for the GIL.
//! Several are taken in the order of addresses (`psync`).

use crate::bystanders::{Running, Stopped};
use crate::error::{closed, exception, forked, in_use, read_only};
use crate::guard::guarded;
use crate::held::Held;
use crate::kept::Kept;
use crate::patience::{self, LOOK};
use crate::process;
use crate::unsynced::{self, Opened};
use indelible::raw::in_slices;
use indelible::{Error, Object};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::time::{Duration, Instant};

pub(crate) struct Attachment {
    held: Mutex<Option<Held>>,
    views: AtomicUsize,
    /// To be detached with the last view, and not used any more.
    closing: AtomicBool,
    /// The last cut waited in vain for stores to end.
    restless: AtomicBool,
    pub(crate) name: String,
    address: AtomicUsize,
    process: u32,
    opened: Opened,
    /// Blocks of the pools through which it was opened.
    kept: Mutex<Vec<Weak<Kept>>>,
}

impl Attachment {
    pub(crate) fn new(py: Python<'_>, name: &str, held: Held) -> Self {
        Attachment {
            address: AtomicUsize::new(held.base().addr()),
            held: Mutex::new(Some(held)),
            views: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            restless: AtomicBool::new(false),
            name: name.to_owned(),
            process: process::generation(),
            opened: Opened::here(py),
            kept: Mutex::default(),
        }
    }

    /// Notes a pool whose `with` block psyncs this object; returns whether it is new.
    pub(crate) fn opened_by(&self, pool: &Arc<Kept>) -> bool {
        let mut all = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let new = Arc::downgrade(pool);
        let is_new = !all.iter().any(|kept| kept.ptr_eq(&new));
        if is_new {
            all.push(new);
        }
        is_new
    }

    pub(crate) fn address(&self) -> usize {
        self.address.load(Ordering::Relaxed)
    }

    fn what(&self) -> String {
        format!("object {:?}", self.name)
    }

    pub(crate) fn open(&self) -> Option<MutexGuard<'_, Option<Held>>> {
        let held = self.lock();
        (!self.closing.load(Ordering::Acquire)).then_some(held)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// False in a child of `fork`, where a lock may be held by a thread that the child lacks.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == process::generation()
    }

    /// Fails in a fork, even for memory that the fork can read.
    pub(crate) fn check_process(&self, py: Python<'_>, operation: &str) -> PyResult<()> {
        if self.is_ours() { Ok(()) } else { Err(forked(py, operation, &self.what())) }
    }

    /// Runs `f` on the attached object, without the GIL, again after each slice of a wait.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&mut Held) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let used = if self.is_ours() {
            patience::locked(py, &self.held, |held| match held.as_mut() {
                Some(held) if !self.closing.load(Ordering::Acquire) => f(held).map(Some),
                _ => Ok(None),
            })?
        } else {
            let used = self.of_parent(py, operation)?.as_mut().map(f).transpose();
            used.map_err(|error| exception(py, &error))?
        };
        used.ok_or_else(|| closed(py, operation, &self.what()))
    }

    /// In a forked child: the parent's attachment for reading, unless another thread had its lock
    /// at the fork.
    fn of_parent(&self, py: Python<'_>, operation: &str) -> PyResult<MutexGuard<'_, Option<Held>>> {
        match self.held.try_lock() {
            Ok(held) if held.as_ref().is_none_or(Held::is_inherited) => Ok(held),
            _ => Err(forked(py, operation, &self.what())),
        }
    }

    /// As [`with`](Attachment::with), but keeps the GIL: for short work that runs no Python code.
    /// Signal handlers and finalizers find all of `f` done, or nothing. After each slice of a wait
    /// `f` fails without a trace and runs again.
    pub(crate) fn quick<T>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&mut Held) -> Result<T, Error>,
    ) -> PyResult<T> {
        let mut waited = Duration::ZERO;
        loop {
            let mut held = self.locked(py, operation)?;
            let (result, cut) = match held.as_mut().filter(|_| !self.closing.load(Ordering::Acquire)) {
                Some(held) => in_slices(&mut waited, LOOK, || guarded(|| f(held))),
                None => {
                    drop(held);
                    return Err(closed(py, operation, &self.what()));
                }
            };
            drop(held);
            match result {
                Ok(Err(_)) if cut => {
                    // Other threads run between slices; one of them may hold the lock.
                    py.detach(|| ());
                    py.check_signals()?;
                }
                Ok(result) => return result.map_err(|error| exception(py, &error)),
                Err(panic) => return Err(crate::error::panicked(py, operation, &self.what(), &panic)),
            }
        }
    }

    fn locked(&self, py: Python<'_>, operation: &str) -> PyResult<MutexGuard<'_, Option<Held>>> {
        loop {
            if !self.is_ours() {
                return self.of_parent(py, operation);
            }
            match self.held.try_lock() {
                Ok(held) => return Ok(held),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => patience::locked(py, &self.held, |_| Ok(()))?,
            }
        }
    }

    pub(crate) fn count_view(&self) {
        self.views.fetch_add(1, Ordering::Relaxed);
    }

    /// As [`with`](Attachment::with); counts a view of the bytes that `f` returns.
    pub(crate) fn view<T: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        mut f: impl FnMut(&mut Held) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.with(py, operation, |held| {
            let seen = f(held)?;
            self.views.fetch_add(1, Ordering::Relaxed);
            Ok(seen)
        })
    }

    pub(crate) fn forget_view(&self) {
        if self.views.fetch_sub(1, Ordering::AcqRel) == 1
            && self.closing.load(Ordering::Acquire)
            && self.is_ours()
        {
            let mut held = self.lock();
            if self.views() == 0 {
                // The failure has no caller; psynced data is safe.
                held.take();
            }
        }
    }

    /// Detaches with the last view; refuses all other calls from now on.
    pub(crate) fn close_with_the_last_view(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py, "close")?;
        // Counted as a view, so that the last view is forgotten after this.
        self.views.fetch_add(1, Ordering::AcqRel);
        self.closing.store(true, Ordering::Release);
        py.detach(|| self.forget_view());
        Ok(())
    }

    pub(crate) fn views(&self) -> usize {
        self.views.load(Ordering::Acquire)
    }

    pub(crate) fn is_closed(&self, py: Python<'_>) -> bool {
        match self.is_ours() {
            true => py.detach(|| self.open().is_none_or(|held| held.is_none())),
            false => self.of_parent(py, "inspect").map_or(true, |held| held.is_none()),
        }
    }

    /// Detaches, unless there are views. Warns if stores are lost.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py, "close")?;
        let ready = |held: &mut Option<Held>| match held {
            Some(held) if self.views() == 0 => held.await_table(),
            _ => Ok(()),
        };
        let result = patience::once_ready(py, &self.held, ready, |held| match (self.views(), held.take()) {
            (0, Some(mut held)) => {
                let unsynced = held.is_unsynced();
                Ok(held.detach().map(|()| unsynced))
            }
            (0, None) => Ok(Ok(false)),
            (views, kept) => {
                *held = kept;
                Err(views)
            }
        })?;
        match result {
            Ok(Ok(true)) => self.warn(py),
            Ok(result) => result.map(drop).map_err(|error| exception(py, &error)),
            Err(views) => Err(in_use("close", &self.what(), views)),
        }
    }

    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        unsynced::warn(py, &self.what(), &self.opened)
    }

    /// Goes to the newest psync, unless there are views; returns whether it was newer. See
    /// [`Held::refresh`].
    pub(crate) fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.check_process(py, "refresh")?;
        let refreshed = patience::locked(py, &self.held, |held| {
            let Some(now) = held.take_if(|_| !self.closing.load(Ordering::Acquire)) else { return Ok(None) };
            let views = self.views();
            if views > 0 && !now.writable() {
                *held = Some(now);
                return Ok(Some(Err(views)));
            }
            // After an error of a slice the attachment is unchanged.
            let (now, newer) = now.refresh();
            if let Some(now) = &now {
                self.address.store(now.base().addr(), Ordering::Relaxed);
            }
            *held = now;
            newer.map(|newer| Some(Ok(newer)))
        })?;
        match refreshed {
            Some(Ok(newer)) => Ok(newer),
            Some(Err(views)) => Err(in_use("refresh", &self.what(), views)),
            None => Err(closed(py, "refresh", &self.what())),
        }
    }

    /// Makes all stores durable. A `cut` may run beside storing threads, without the GIL unless
    /// they store all the time.
    pub(crate) fn psync(&self, py: Python<'_>, cut: bool) -> PyResult<()> {
        if !cut {
            return self.with(py, "psync", Held::psync);
        }
        let mut running = Running::default();
        let done = self.with(py, "psync", |held| held.psync_cut(&mut running));
        if !running.gave_up {
            return done;
        }
        let (began, mut waited) = (Instant::now(), Duration::ZERO);
        let done = loop {
            let mut stopped = Stopped::new(began, self.restless.load(Ordering::Relaxed));
            let (done, cut) = self.quick(py, "psync", |held| {
                Ok(in_slices(&mut waited, LOOK, || guarded(|| held.psync_cut(&mut stopped))))
            })?;
            self.restless.store(stopped.in_vain, Ordering::Relaxed);
            let again = stopped.gave_up || (cut && matches!(done, Ok(Err(_))));
            // Nothing is done with Python before this thread has the GIL again, nor is it waited
            // for with the lock.
            drop(stopped);
            if !again {
                break done;
            }
            py.check_signals()?;
        };
        match done {
            Ok(done) => done.map_err(|error| exception(py, &error)),
            Err(panic) => Err(crate::error::panicked(py, "psync", &self.what(), &panic)),
        }
    }

    /// Undoes all stores since the last psync; with `unused`, only without views.
    pub(crate) fn revert(&self, py: Python<'_>, unused: bool) -> PyResult<()> {
        let in_use = self.with(py, "revert", |held| match self.views() {
            views if unused && views > 0 => Ok(views),
            _ => held.revert().map(|()| 0),
        })?;
        if in_use == 0 { Ok(()) } else { Err(crate::error::in_use("revert", &self.what(), in_use)) }
    }

    /// Ends a `with` block: psyncs, unless an exception ends it.
    pub(crate) fn leave(&self, py: Python<'_>, failed: bool) -> PyResult<()> {
        if failed {
            return self.close_with_the_last_view(py);
        }
        if !self.is_closed(py) {
            self.psync(py, false)?;
        }
        self.close(py)
    }

    pub(crate) fn recovered(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, "inspect", |held| Ok(held.object().map_or(0, Object::recovered_bytes)))
    }

    /// Grows the object at its address: views stay valid.
    pub(crate) fn grow(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        let grown = self.with(py, "grow", |held| {
            match held {
                Held::Writer(object) => object.grow(size)?,
                Held::Heap(heap) => heap.grow(size)?,
                Held::Reader(_) | Held::ReadHeap(_) => return Ok(false),
            }
            Ok(true)
        })?;
        if grown { Ok(()) } else { Err(read_only(py, "grow", &self.what())) }
    }
}

/// Detaches the object with the last reference, unless a pool's block keeps its changes. A pending
/// exception stays pending.
impl Drop for Attachment {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        let Some(mut held) = self.lock().take() else { return };
        if !held.is_unsynced() {
            return;
        }
        let kept = std::mem::take(self.kept.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()));
        for pool in kept.iter().filter_map(Weak::upgrade) {
            match pool.keep(&self.name, held) {
                None => return,
                Some(back) => held = back,
            }
        }
        drop(held);
        unsynced::warn_at_drop(&self.what(), &self.opened);
    }
}
