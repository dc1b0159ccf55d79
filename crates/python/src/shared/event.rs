//! Words as file descriptors.

use crate::handle::Handle;
use pyo3::prelude::*;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// A file descriptor that becomes readable when a word of a shared object changes: see
/// `Shared.event`. For select, poll and asyncio's `add_reader`; a context manager, which closes it.
#[pyclass(frozen, module = "indelible")]
pub(crate) struct Event {
    handle: Handle<indelible::Event>,
}

impl Event {
    pub(super) fn new(event: indelible::Event, name: &str) -> PyResult<Self> {
        Ok(Event { handle: Handle::new(format!("event of shared object {name:?}"), event) })
    }
}

#[pymethods]
impl Event {
    /// The descriptor, owned by the event: neither close it nor read from it.
    fn fileno(&self, py: Python<'_>) -> PyResult<RawFd> {
        self.handle.with(py, "use", |event| Ok(event.as_fd().as_raw_fd()))
    }

    /// Makes the descriptor unreadable until the next change; returns how many changes were seen
    /// since the last call.
    fn take(&self, py: Python<'_>) -> PyResult<u64> {
        self.handle.with(py, "use", |event| event.take())
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Stops watching the word, and closes the descriptor.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, || Ok(()))
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
