//! Lives, whose end others notice.

use crate::handle::Handle;
use pyo3::prelude::*;

/// A life, known to others by its number: see `Shared.begin_life`. A context manager, which ends
/// it.
#[pyclass(frozen, module = "indelible")]
pub(crate) struct Life {
    handle: Handle<indelible::Life>,
    number: u32,
}

impl Life {
    pub(super) fn new(life: indelible::Life) -> Self {
        let number = life.number();
        Life { handle: Handle::new(format!("life {number}"), life), number }
    }
}

#[pymethods]
impl Life {
    /// Its number, never 0.
    #[getter]
    fn number(&self) -> u32 {
        self.number
    }

    /// Whether it has ended, or belongs to another process.
    #[getter]
    fn ended(&self) -> bool {
        self.handle.is_closed()
    }

    /// Ends it, and wakes waiters.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
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
        self.end(py)
    }

    fn __repr__(&self) -> String {
        format!("<indelible.Life {}{}>", self.number, if self.ended() { ", ended" } else { "" })
    }
}
