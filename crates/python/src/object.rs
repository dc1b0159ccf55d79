//! An attached object.

#![allow(unsafe_code)]

use crate::attachment::Attachment;
use crate::buffer::{self, Bytes, USE};
use crate::held::Held;
use crate::pool::Pool;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::sync::Arc;

/// An attached object: a buffer of its bytes. Made by `Pool.attach`.
#[pyclass(frozen, weakref, module = "indelible")]
pub(crate) struct Object {
    pub(crate) attachment: Arc<Attachment>,
    pool: Py<Pool>,
}

impl Object {
    pub(crate) fn new(py: Python<'_>, pool: Py<Pool>, name: &str, held: Held) -> Self {
        let attachment = Arc::new(Attachment::new(py, name, held));
        pool.get().kept.add(&attachment);
        Object { attachment, pool }
    }
}

#[pymethods]
impl Object {
    #[getter]
    fn name(&self) -> &str {
        &self.attachment.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Bytes of log that the attach replayed after a writer's death.
    #[getter]
    fn recovered(&self, py: Python<'_>) -> PyResult<u64> {
        self.attachment.recovered(py)
    }

    /// Its fixed address, the same in every process and run, unless an array is read beside its
    /// writer.
    #[getter]
    fn address(&self) -> usize {
        self.attachment.address()
    }

    /// Size in bytes.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.attachment.with(py, "inspect", |held| Ok(held.len()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.size(py)
    }

    /// Whether it is attached for reading only.
    #[getter]
    fn readonly(&self, py: Python<'_>) -> PyResult<bool> {
        self.attachment.with(py, "inspect", |held| Ok(!held.writable()))
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        self.attachment.is_closed(py)
    }

    /// Arrays and memoryviews of it in use.
    #[getter]
    fn views(&self) -> usize {
        self.attachment.views()
    }

    /// Durable psyncs with changes, over its life.
    #[getter]
    fn psyncs(&self, py: Python<'_>) -> PyResult<u64> {
        self.attachment.with(py, "inspect", |held| Ok(held.object().map_or(0, indelible::Object::psyncs)))
    }

    /// Whether stores are not durable.
    fn _is_unsynced(&self, py: Python<'_>) -> PyResult<bool> {
        self.attachment.with(py, "inspect", |held| Ok(held.is_unsynced()))
    }

    /// How stores are noticed: "wp-async", "fault-log" or "mprotect"; "" if attached for reading.
    #[getter]
    fn tracking(&self, py: Python<'_>) -> PyResult<String> {
        let rung = |held: &mut Held| Ok(held.object().map(indelible::Object::rung).unwrap_or_default());
        self.attachment.with(py, "inspect", rung)
    }

    /// Makes all stores since the last psync durable, as one step, without the GIL.
    ///
    /// No thread may store to the object meanwhile, unless `cut` asks for a consistent cut: then
    /// such stores wait, or belong to the next psync. Does nothing on an object attached for
    /// reading.
    #[pyo3(signature = (*, cut = false))]
    fn psync(&self, py: Python<'_>, cut: bool) -> PyResult<()> {
        self.attachment.psync(py, cut)
    }

    /// Undoes all stores since the last psync; arrays and memoryviews stay valid, and the size
    /// stays. No thread may store to the object meanwhile. Does nothing on an object attached for
    /// reading.
    fn revert(&self, py: Python<'_>) -> PyResult<()> {
        self.attachment.revert(py, false)
    }

    /// Marks `length` bytes from `offset` on, by default to the end, as stored to: the next psync
    /// compares them.
    ///
    /// Needed for stores that bypass the page tables: registered buffers of io_uring, RDMA, VFIO,
    /// O_DIRECT reads that a psync overtakes (mark the range when it is pinned, and after each such
    /// I/O), and /proc/self/mem with tracking "mprotect". Ignored on an object attached for
    /// reading.
    #[pyo3(signature = (offset = 0, length = None))]
    fn mark_dirty(&self, py: Python<'_>, offset: usize, length: Option<usize>) -> PyResult<()> {
        self.attachment.with(py, "mark", |held| {
            if let Some(object) = held.object() {
                object.mark_dirty(offset..length.map_or(usize::MAX, |length| offset.saturating_add(length)));
            }
            Ok(())
        })
    }

    /// Reads `length` bytes from `offset` on, by default to the end, into memory; returns how many
    /// are there.
    ///
    /// Unreadable bytes are an error here, and a signal when touched. Needed before system calls on
    /// objects on device-DAX where `pmo doctor` says that userfaultfd sees faults of user code
    /// only.
    #[pyo3(signature = (offset = 0, length = None))]
    fn prefault(&self, py: Python<'_>, offset: usize, length: Option<usize>) -> PyResult<usize> {
        let range = offset..length.map_or(usize::MAX, |length| offset.saturating_add(length));
        self.attachment.with(py, "prefault", |held| held.prefault(range.clone()))
    }

    /// Grows the object to `size` bytes. Exported buffers stay valid.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        self.attachment.grow(py, size)
    }

    /// Goes to the newest psync of an object from `Pool.attach_snapshot`; returns whether it was
    /// newer. BufferError while arrays or memoryviews of it exist.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        self.attachment.refresh(py)
    }

    /// The newest psync as another object, if this one reads an older state beside a writer.
    fn _newer(&self, py: Python<'_>) -> PyResult<Option<Object>> {
        self.attachment.check_process(py, "refresh")?;
        let newer = self.attachment.with(py, "refresh", |held| held.newer())?;
        let made =
            |object| Object::new(py, self.pool.clone_ref(py), &self.attachment.name, Held::Reader(object));
        Ok(newer.map(made))
    }

    /// Detaches; unpsynced stores are lost. BufferError while arrays or memoryviews of it exist.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.attachment.close(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes. After an exception it psyncs nothing, and detaches the object with the
    /// last of its arrays.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.attachment.leave(py, !exception.is_none())
    }

    /// A table for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("indelible._notebook")?.getattr("attached")?.call1((slf,))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let name = &self.attachment.name;
        match self.size(py) {
            Ok(size) => format!("<indelible.Object {name:?}, {size} bytes>"),
            Err(_) => format!("<indelible.Object {name:?}, closed>"),
        }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let attachment = slf.get().attachment.clone();
        let lend = || attachment.view(slf.py(), USE, |held| Ok(Bytes::of(held)));
        // SAFETY: Python's.
        unsafe { buffer::give(view, flags, slf.as_any(), lend, || attachment.forget_view()) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.attachment.forget_view();
    }
}
