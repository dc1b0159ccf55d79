//! Blocks of a dict's heap that hold arrays, as buffers.
//!
//! Invariants:
//! 1. `Counts` has, by address, how many [`Block`]s exist. It grows under the attachment's lock,
//!    while the block is one of the dict's.
//! 2. A block with a count is not freed (`dict::table` asks).

#![allow(unsafe_code)]

use crate::attachment::Attachment;
use crate::buffer::{self, Bytes, USE};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Counts(Mutex<HashMap<usize, usize>>);

impl Counts {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, address: usize) -> bool {
        self.lock().contains_key(&address)
    }
}

/// A block in use by Python, as a buffer.
#[pyclass(frozen, weakref, module = "indelible._indelible")]
pub(crate) struct Block {
    pub(crate) attachment: Arc<Attachment>,
    counts: Arc<Counts>,
    pub(crate) address: usize,
    bytes: Bytes,
    /// The dict that the block is a value of: while an array is in use, opening the dict returns
    /// this one.
    pub(crate) owner: PyOnceLock<Py<PyAny>>,
}

impl Block {
    /// Counts a use of `len` bytes at `address`, in the object, whose lock is held.
    pub(crate) fn new(
        attachment: &Arc<Attachment>,
        counts: &Arc<Counts>,
        (address, len): (usize, usize),
        writable: bool,
    ) -> Block {
        attachment.count_view();
        *counts.lock().entry(address).or_default() += 1;
        let bytes = Bytes::new(address, len, writable);
        Block {
            attachment: attachment.clone(),
            counts: counts.clone(),
            address,
            bytes,
            owner: PyOnceLock::new(),
        }
    }
}

#[pymethods]
impl Block {
    /// The dict that the block is a value of, if any.
    #[getter]
    fn _owner(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.owner.get(py).map(|owner| owner.clone_ref(py))
    }

    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let block = slf.get();
        let (attachment, bytes) = (&block.attachment, block.bytes);
        let lend = || attachment.view(slf.py(), USE, |_| Ok(bytes));
        // SAFETY: Python's.
        unsafe { buffer::give(view, flags, slf.as_any(), lend, || attachment.forget_view()) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.attachment.forget_view();
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if !self.attachment.is_ours() {
            return;
        }
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
        drop(counts);
        self.attachment.forget_view();
    }
}
