//! Waits of Python code: as long as the caller says, without the GIL, in slices between which
//! signals are handled.

use crate::error::exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Time between looks for signals, such as Ctrl-C.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A timeout in seconds; `None`: unlimited.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let why = |_| PyValueError::new_err("timeout is a number of seconds, not negative, or None");
    seconds.map(Duration::try_from_secs_f64).transpose().map_err(why)
}

/// Runs `attempt`, which waits as long as it is told, until it returns something, time is over, or
/// a signal handler raises.
pub(crate) fn wait<R>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut attempt: impl FnMut(Duration) -> PyResult<Option<R>>,
) -> PyResult<Option<R>> {
    let begin = Instant::now();
    loop {
        let left = timeout.map_or(LOOK, |timeout| timeout.saturating_sub(begin.elapsed()).min(LOOK));
        let found = attempt(left)?;
        if found.is_some() || timeout.is_some_and(|timeout| begin.elapsed() >= timeout) {
            return Ok(found);
        }
        // Nothing was taken that an exception could lose.
        py.check_signals()?;
    }
}

/// Makes a call without the GIL that may wait for locks: after each slice of a wait signals are
/// handled, and the call is made again.
pub(crate) fn in_slices<T: Send>(
    py: Python<'_>,
    mut call: impl FnMut() -> indelible::Result<T> + Send,
) -> PyResult<T> {
    let mut waited = Duration::ZERO;
    sliced(py, || Some(indelible::raw::in_slices(&mut waited, LOOK, &mut call)))
}

/// As [`in_slices`], with `mutex` locked, which may take long.
pub(crate) fn locked<S: Send, T: Send>(
    py: Python<'_>,
    mutex: &Mutex<S>,
    mut call: impl FnMut(&mut S) -> indelible::Result<T> + Send,
) -> PyResult<T> {
    let mut waited = Duration::ZERO;
    sliced(py, || {
        let mut state = lock_within_a_slice(mutex)?;
        Some(indelible::raw::in_slices(&mut waited, LOOK, || call(&mut state)))
    })
}

/// As [`locked`], for an `end` that is called once: first makes `ready`, which waits in slices for
/// the locks that `end` takes. If a signal handler raises, nothing has changed; `end` then waits no
/// longer than `ready` had left.
pub(crate) fn once_ready<S: Send, T: Send>(
    py: Python<'_>,
    mutex: &Mutex<S>,
    mut ready: impl FnMut(&mut S) -> indelible::Result<()> + Send,
    end: impl FnOnce(&mut S) -> T + Send,
) -> PyResult<T> {
    let (mut waited, mut end) = (Duration::ZERO, Some(end));
    loop {
        let ended = py.detach(|| {
            let mut state = lock_within_a_slice(mutex)?;
            let (is_ready, cut) = indelible::raw::in_slices(&mut waited, LOOK, || ready(&mut state));
            if cut && is_ready.is_err() {
                return None;
            }
            let end = end.take()?;
            Some(indelible::raw::in_slices(&mut waited, Duration::MAX, || end(&mut state)).0)
        });
        match ended {
            Some(ended) => return Ok(ended),
            None => py.check_signals()?,
        }
    }
}

/// `None`, or an error and `true`: a wait ended early.
fn sliced<T: Send>(
    py: Python<'_>,
    mut attempt: impl FnMut() -> Option<(indelible::Result<T>, bool)> + Send,
) -> PyResult<T> {
    loop {
        match py.detach(&mut attempt) {
            None | Some((Err(_), true)) => py.check_signals()?,
            Some((done, _)) => return done.map_err(|error| exception(py, &error)),
        }
    }
}

fn lock_within_a_slice<S>(mutex: &Mutex<S>) -> Option<MutexGuard<'_, S>> {
    let (mut begin, mut pause) = (None, Duration::from_micros(10));
    loop {
        match mutex.try_lock() {
            Ok(state) => return Some(state),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        // A clock costs as much as the lock, which is nearly always free.
        if begin.get_or_insert_with(Instant::now).elapsed() >= LOOK {
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
    }
}
