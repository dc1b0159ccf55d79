//! A reader of a log, beside its writer.

use crate::handle::Handle;
use crate::pool::Pool;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

/// A log as of a psync, from its first record on, beside its writer. Made by `Pool.log` with mode
/// "r". `indelible.LogReader` iterates over it.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct LogReader {
    handle: Handle<indelible::LogReader>,
    pool: Py<Pool>,
    name: String,
}

/// The record for Python, without running Python code: a signal could lose the record.
fn record<'py>(py: Python<'py>, of: &indelible::LogRecord) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("indelible._log")?.getattr("LogRecord")?.unbind())
    })?;
    let fields = (of.number, PyBytes::new(py, &of.bytes), of.message).into_pyobject(py)?;
    py.get_type::<PyTuple>().call_method1(intern!(py, "__new__"), (class.bind(py), fields))
}

#[pymethods]
impl LogReader {
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: &str, key: Option<&[u8]>) -> PyResult<Self> {
        let key = key.unwrap_or_default();
        let reader = pool.get().with(pool.py(), "attach", |pool| pool.read_log(name, key))?;
        Ok(LogReader {
            handle: Handle::new(format!("log {name:?}"), reader),
            pool: pool.clone().unbind(),
            name: name.to_owned(),
        })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// The next record; None: there is none, as of the shown psync.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.handle.with(py, "read", indelible::LogReader::read)?;
        found.map(|found| record(py, &found)).transpose()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.read(py)
    }

    /// Goes to the newest psync; returns whether it was newer. The next record stays the next.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.with(py, "refresh", indelible::LogReader::refresh)
    }

    /// Whether it excludes writers, and has the object's addresses: in a pool opened for reading.
    #[getter]
    fn locked(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.with(py, "inspect", |reader| Ok(reader.is_locked()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.handle.with(py, "inspect", |reader| Ok(reader.len() as usize))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Stops reading.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, self.pool.get().table())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
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
