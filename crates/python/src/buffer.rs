//! Memory of objects as Python's buffers.
//!
//! Invariant: a view that was given out is counted in the attachment, or the handle, and the Python
//! object it refers to keeps that; so the bytes stay mapped until the view is released
//! (`attachment`, 3; `handle`, 2).
//!
//! Rust never refers to those bytes. Threads of Python that store to them at once race as they do
//! on any array.

#![allow(unsafe_code)]

use crate::held::Held;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// The operation that errors name.
pub(crate) const USE: &str = "use the memory of";

#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    address: usize,
    len: usize,
    writable: bool,
}

impl Bytes {
    /// `len` bytes at an address that was exposed.
    pub(crate) fn new(address: usize, len: usize, writable: bool) -> Self {
        Bytes { address, len, writable }
    }

    pub(crate) fn of(held: &mut Held) -> Self {
        Bytes::new(held.lend().expose_provenance(), held.len(), held.writable())
    }

    fn as_ptr(self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    pub(crate) fn len(self) -> usize {
        self.len
    }
}

/// Answers `__getbuffer__` of `owner` with the bytes that `lend` counts a view of; `forget` undoes
/// that.
///
/// # Safety
///
/// `view` is what Python gave to `__getbuffer__`; `__releasebuffer__` forgets the view.
pub(crate) unsafe fn give(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: &Bound<'_, PyAny>,
    lend: impl FnOnce() -> PyResult<Bytes>,
    forget: impl FnOnce(),
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("there is no view to fill"));
    }
    // SAFETY: Python's; with every error it holds nothing.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let bytes = lend()?;
    let (len, readonly) = (bytes.len as ffi::Py_ssize_t, c_int::from(!bytes.writable));
    // SAFETY: Python's; the bytes stay (see the module). It takes a reference to `owner`, or
    // raises.
    match unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), bytes.as_ptr().cast(), len, readonly, flags) }
    {
        0 => Ok(()),
        _ => {
            forget();
            Err(PyErr::fetch(owner.py()))
        }
    }
}
