//! Objects written once, by `_checkpoints.py`.

use crate::error::closed;
use crate::handle::Handle;
use crate::pool::Pool;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// An object being written, hidden until `publish`. Dropping it, or the end of a `with` block,
/// leaves nothing unless it was published.
#[pyclass(frozen, module = "indelible._indelible")]
pub(crate) struct Import {
    handle: Handle<indelible::Import>,
    pool: Py<Pool>,
    /// Kept from call to call.
    piece: Mutex<Vec<u8>>,
}

#[pymethods]
impl Import {
    #[new]
    fn new(pool: &Bound<'_, Pool>, name: &str, size: u64) -> PyResult<Self> {
        let import = pool.get().with(pool.py(), "create", |pool| pool.import(name, size))?;
        let handle = Handle::new(format!("object {name:?}"), import);
        Ok(Import { handle, pool: pool.clone().unbind(), piece: Mutex::default() })
    }

    /// Appends the bytes of a small buffer, copied with the GIL.
    fn append(&self, py: Python<'_>, bytes: PyBuffer<u8>) -> PyResult<()> {
        let lock = || self.piece.lock().unwrap_or_else(PoisonError::into_inner);
        let mut piece = std::mem::take(&mut *lock());
        piece.resize(bytes.item_count(), 0);
        bytes.copy_to_slice(py, &mut piece)?;
        let appended = self.handle.once(py, "write", |import| import.append(&piece));
        *lock() = piece;
        appended
    }

    /// Makes the object durable and visible as one step.
    fn publish(&self, py: Python<'_>) -> PyResult<()> {
        match self.handle.close(py, self.pool.get().table(), indelible::Import::publish)? {
            Some(()) => Ok(()),
            None => Err(closed(py, "write", "an object that is written once")),
        }
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
        self.handle.end(py, self.pool.get().table())
    }
}
