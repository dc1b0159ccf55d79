//! One who reads a log, beside whoever appends to it.

use crate::handle::Handle;
use crate::pool::Pool;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A log, as a psync left it, from its first record on, whoever appends to it. Made by `Pool.log` with mode "r". `indelible.LogReader` iterates over it.
#[pyclass(frozen, subclass, weakref, module = "indelible._indelible")]
pub(crate) struct LogReader {
    handle: Handle<indelible::LogReader>,
    pool: Py<Pool>,
    name: String,
}

/// Number, queue and number of the message there, bytes.
type Record<'py> = (u64, Option<(u64, u64)>, Bound<'py, PyBytes>);

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

    /// Name of the object.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The pool it was taken from.
    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    fn _read<'py>(&self, py: Python<'py>) -> PyResult<Option<Record<'py>>> {
        let record = self.handle.with(py, "read", indelible::LogReader::read)?;
        Ok(record.map(|record| (record.number, record.message, PyBytes::new(py, &record.bytes))))
    }

    /// Goes to the newest psync; returns whether there was one. The next record stays the next one.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.handle.with(py, "refresh", indelible::LogReader::refresh)
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

    /// Reads no longer, and gives back the piece of the pool that its state took.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py)
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
