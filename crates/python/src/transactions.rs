//! Transactions by address, and the loop that runs a function as one: a signal handler runs before
//! a transaction, in its function, or after it, never between two of its steps.

use crate::error::{exception, over};
use crate::options::choice;
use crate::patience;
use crate::pool::Pool;
use indelible::raw::{self, transactions as running};
use indelible::{Class, CreateOptions, EpochBounds, Error, ErrorKind};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ptr::with_exposed_provenance;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Waits without the GIL.
fn waits<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    py.detach(work).map_err(|error| exception(py, &error))
}

fn class_of(durability: &str) -> PyResult<Class> {
    choice("durability", &Class::ALL.map(|class| (class.name(), class)), durability)
}

#[pyfunction]
pub(crate) fn _set_durability(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    name: &str,
    key: Option<&[u8]>,
    durability: &str,
) -> PyResult<()> {
    let class = class_of(durability)?;
    pool.get().with(py, "change", |pool| pool.set_class(name, key.unwrap_or_default(), class))
}

/// Creates an object that only transactions change; `ecc`: its words have check words.
#[pyfunction]
pub(crate) fn _create_transactional(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    name: &str,
    size: u64,
    key: Option<&[u8]>,
    durability: &str,
    ecc: bool,
) -> PyResult<()> {
    let class = class_of(durability)?;
    let options = CreateOptions::new(size).class(class).ecc(ecc).key(key.unwrap_or_default());
    pool.get().with(py, "create", |pool| pool.create_with(name, &options))
}

/// The number of repaired words, and the offsets of lost ones.
#[pyfunction]
pub(crate) fn _scrub(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    name: &str,
    key: Option<&[u8]>,
) -> PyResult<(u64, u64, Vec<u64>)> {
    let found =
        pool.get().with(py, "scrub", |pool| pool.scrub(name, key.unwrap_or_default(), &mut |_, _| {}))?;
    Ok((found.words, found.repaired, found.lost))
}

#[pyfunction]
pub(crate) fn _set_readable_outside(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    name: &str,
    key: Option<&[u8]>,
    readable: bool,
) -> PyResult<()> {
    pool.get().with(py, "change", |pool| pool.set_readable_outside(name, key.unwrap_or_default(), readable))
}

/// An object attached for transactions; other code must not touch its memory.
///
/// Dropping it detaches the object, also if an exception comes before the first use.
#[pyclass(frozen, module = "indelible")]
pub(crate) struct TxAttachment {
    /// 0 once it is closed.
    address: AtomicUsize,
    pool: Py<Pool>,
}

#[pymethods]
impl TxAttachment {
    #[new]
    fn new(
        py: Python<'_>,
        pool: &Bound<'_, Pool>,
        name: &str,
        key: Option<&[u8]>,
        with_on_demand: bool,
    ) -> PyResult<Self> {
        let address = pool.get().with(py, "attach", |pool| {
            let attach =
                if with_on_demand { running::attach_with_on_demand } else { running::attach_transactional };
            attach(pool, name, key.unwrap_or_default()).map(|address| address.addr().get())
        })?;
        Ok(TxAttachment { address: AtomicUsize::new(address), pool: pool.clone().unbind() })
    }

    /// Address of the object; None once it is closed.
    #[getter]
    fn address(&self) -> Option<usize> {
        Some(self.address.load(Ordering::Acquire)).filter(|&address| address != 0)
    }

    /// Detaches, once. `InTransaction` leaves it open; after any other error it is closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let table = self.pool.get().table();
        // In a transaction this is an error, which needs no table.
        let ready = |_: &mut ()| if running::is_open() { Ok(()) } else { table() };
        let ended = patience::once_ready(py, &Mutex::new(()), ready, |_| self.detach())?;
        ended.map_err(|error| exception(py, &error))
    }

    fn __enter__(&self) -> Option<usize> {
        self.address()
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}

impl TxAttachment {
    fn detach(&self) -> Result<(), Error> {
        let address = self.address.swap(0, Ordering::AcqRel);
        if address == 0 {
            return Ok(());
        }
        let done = raw::detach(with_exposed_provenance(address));
        if done.as_ref().is_err_and(|error| error.kind() == ErrorKind::InTransaction) {
            self.address.store(address, Ordering::Release);
        }
        done
    }
}

impl Drop for TxAttachment {
    fn drop(&mut self) {
        // In a fork, or within a transaction, it stays attached until the process ends.
        let detached = Python::try_attach(|py| py.detach(|| self.detach()));
        drop(detached);
    }
}

/// A running transaction. `_run_transaction` owns its end: no Python code runs between the native
/// step and this state.
#[pyclass(frozen, subclass, module = "indelible")]
pub(crate) struct Transaction {
    over: AtomicBool,
    commit: Mutex<Vec<Py<PyAny>>>,
    abort: Mutex<Vec<Py<PyAny>>>,
}

#[pymethods]
impl Transaction {
    #[new]
    fn new() -> Self {
        Transaction { over: AtomicBool::new(true), commit: Mutex::default(), abort: Mutex::default() }
    }

    /// Runs the transaction again, beside no other of its pool, unless it already runs alone: code
    /// behind this call runs once. ClassMismatch: its objects are on demand.
    fn alone(&self, py: Python<'_>) -> PyResult<()> {
        self._runs(py)?;
        running::alone().map_err(|error| exception(py, &error))
    }

    /// Calls a function after the commit, in the order of these calls; a run that does not commit
    /// forgets it. Errors of such functions are raised together, as `AfterCommit`.
    fn on_commit(&self, py: Python<'_>, action: Py<PyAny>) -> PyResult<()> {
        self._runs(py)?;
        lock(&self.commit).push(action);
        Ok(())
    }

    /// Calls a function if this run of the transaction does not commit, the last call first.
    fn on_abort(&self, py: Python<'_>, action: Py<PyAny>) -> PyResult<()> {
        self._runs(py)?;
        lock(&self.abort).push(action);
        Ok(())
    }

    /// An error unless its function runs.
    fn _runs(&self, py: Python<'_>) -> PyResult<()> {
        if self.over.load(Ordering::Acquire) { Err(over(py)) } else { Ok(()) }
    }
}

impl Transaction {
    /// After an abort: calls all its functions; returns the first error.
    fn undone(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.commit).clear();
        let mut result = Ok(());
        loop {
            let Some(action) = lock(&self.abort).pop() else { return result };
            result = result.and(action.call0(py).map(drop));
        }
    }

    /// After the commit: calls all its functions.
    fn committed(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.abort).clear();
        let actions = std::mem::take(&mut *lock(&self.commit));
        let failed: Vec<PyErr> = actions.iter().filter_map(|action| action.call0(py).err()).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let errors: Vec<_> = failed.into_iter().map(|error| error.into_value(py)).collect();
        py.import("indelible._errors")?.getattr("raise_after_commit")?.call1((errors,)).map(drop)
    }
}

fn lock<T>(list: &Mutex<T>) -> MutexGuard<'_, T> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Aborts the thread's transaction on drop, unless it committed.
struct Begun<'py> {
    py: Python<'py>,
    committed: bool,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if !self.committed {
            self.py.detach(running::abort);
        }
    }
}

/// Runs `body(tx)` as a transaction on the objects at these addresses, again after each conflict;
/// returns its result.
#[pyfunction]
pub(crate) fn _run_transaction(
    py: Python<'_>,
    addresses: Vec<usize>,
    tx: &Bound<'_, Transaction>,
    body: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    waits(py, || {
        let objects: Vec<*const u8> = addresses.into_iter().map(with_exposed_provenance).collect();
        raw::begin_transaction(&objects)
    })?;
    let mut begun = Begun { py, committed: false };
    tx.get().over.store(false, Ordering::Release);
    let done = until_committed(&mut begun, tx, body);
    tx.get().over.store(true, Ordering::Release);
    drop(begun);
    match done {
        Ok(value) => tx.get().committed(py).map(|()| value),
        Err(error) => match tx.get().undone(py) {
            Ok(()) => Err(error),
            Err(other) => {
                other.value(py).setattr("__context__", error.into_value(py))?;
                Err(other)
            }
        },
    }
}

fn until_committed(
    begun: &mut Begun<'_>,
    tx: &Bound<'_, Transaction>,
    body: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = begun.py;
    loop {
        match body.call1((tx,)) {
            // A missing attribute costs an exception.
            Ok(value) if !value.is_none() && value.hasattr("__await__")? => {
                if value.hasattr("close")? {
                    value.call_method0("close")?;
                }
                return Err(PyTypeError::new_err(
                    "a transaction's function cannot be a coroutine: it would run when the transaction is over",
                ));
            }
            Ok(value) => {
                if waits(py, running::commit)? {
                    begun.committed = true;
                    return Ok(value.unbind());
                }
            }
            // After a conflict the exception may come from data of two moments, and is dropped; an
            // interrupt is not.
            Err(error) if !error.is_instance_of::<PyException>(py) || !running::is_conflicted() => {
                return Err(error);
            }
            Err(_) => {}
        }
        waits(py, running::again)?;
        tx.get().undone(py)?;
    }
}

#[pyfunction]
pub(crate) fn _in_transaction() -> bool {
    running::is_open()
}

#[pyfunction]
pub(crate) fn _tx_read<'py>(py: Python<'py>, address: usize, len: usize) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, len, |into| {
        running::read(with_exposed_provenance(address), into).map_err(|error| exception(py, &error))
    })
}

#[pyfunction]
pub(crate) fn _tx_write(py: Python<'_>, address: usize, bytes: &[u8]) -> PyResult<()> {
    let to = std::ptr::with_exposed_provenance_mut(address);
    running::write(to, bytes).map_err(|error| exception(py, &error))
}

#[pyfunction]
pub(crate) fn _tx_sync(py: Python<'_>, address: usize) -> PyResult<()> {
    waits(py, || running::tx_sync(with_exposed_provenance(address)))
}

#[pyfunction]
pub(crate) fn _tx_psync(py: Python<'_>, address: usize) -> PyResult<()> {
    waits(py, || running::publish(with_exposed_provenance(address)))
}

/// Transactions and bytes that are not durable.
#[pyfunction]
pub(crate) fn _tx_pending(py: Python<'_>, address: usize) -> PyResult<(u64, u64)> {
    let pending =
        running::pending(with_exposed_provenance(address)).map_err(|error| exception(py, &error))?;
    Ok((pending.transactions, pending.bytes))
}

/// `None` seconds: never.
#[pyfunction]
pub(crate) fn _set_epochs(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    seconds: Option<f64>,
    bytes: u64,
) -> PyResult<()> {
    let why = |_| PyValueError::new_err("the time is a number of seconds, not negative");
    let every = seconds.map_or(Ok(Duration::MAX), Duration::try_from_secs_f64).map_err(why)?;
    pool.get().with(py, "set epochs of", |pool| {
        pool.set_epochs(EpochBounds { every, bytes });
        Ok(())
    })
}
