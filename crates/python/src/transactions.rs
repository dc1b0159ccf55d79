//! Transactions by address: `python/indelible/_transactions.py` has the function that is run again, and this the thread's transaction that it runs in.

use crate::error::exception;
use crate::options::choice;
use crate::pool::Pool;
use indelible::raw::{self, transactions as running};
use indelible::{Class, CreateOptions, EpochBounds, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ptr::with_exposed_provenance;
use std::time::Duration;

/// Does something that waits, without the GIL.
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

/// Creates an object to which transactions alone store; `ecc`: its words have check words.
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

/// Words that were read and repaired, and the offsets of those that are lost.
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

/// Attaches an object for transactions, and returns its address, at which nobody may touch anything.
#[pyfunction]
pub(crate) fn _tx_attach(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    name: &str,
    key: Option<&[u8]>,
    with_on_demand: bool,
) -> PyResult<usize> {
    pool.get().with(py, "attach", |pool| {
        let attach =
            if with_on_demand { running::attach_with_on_demand } else { running::attach_transactional };
        attach(pool, name, key.unwrap_or_default()).map(|address| address.addr().get())
    })
}

#[pyfunction]
pub(crate) fn _tx_detach(py: Python<'_>, address: usize) -> PyResult<()> {
    waits(py, || raw::detach(with_exposed_provenance(address)))
}

#[pyfunction]
pub(crate) fn _tx_begin(py: Python<'_>, addresses: Vec<usize>) -> PyResult<()> {
    waits(py, || {
        let objects: Vec<*const u8> = addresses.into_iter().map(with_exposed_provenance).collect();
        raw::begin_transaction(&objects)
    })
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
pub(crate) fn _tx_alone(py: Python<'_>) -> PyResult<()> {
    running::alone().map_err(|error| exception(py, &error))
}

/// `False`: it is to be run again.
#[pyfunction]
pub(crate) fn _tx_commit(py: Python<'_>) -> PyResult<bool> {
    waits(py, running::commit)
}

/// Whether it has met another one, and is to be run again, whatever came of it.
#[pyfunction]
pub(crate) fn _tx_conflicted() -> bool {
    running::is_conflicted()
}

#[pyfunction]
pub(crate) fn _tx_again(py: Python<'_>) -> PyResult<()> {
    waits(py, running::again)
}

#[pyfunction]
pub(crate) fn _tx_abort(py: Python<'_>) {
    py.detach(running::abort);
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
