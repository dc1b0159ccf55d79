//! Objects of an attached view, as buffers.
//!
//! Invariant: an object of an attached view stays attached, at its addresses, until the view is
//! closed or changes are adopted (`indelible::AttachedView`); both are refused while its buffers
//! are counted (`handle`, 2).

#![allow(unsafe_code)]

use super::attached::AttachedView;
use crate::buffer::{self, Bytes, USE};
use indelible::{ErrorKind, Result};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// The object in a slot, as the buffer behind memoryviews.
#[pyclass(frozen, module = "indelible._indelible")]
pub(super) struct SlotBytes {
    pub(super) view: Py<AttachedView>,
    pub(super) slot: usize,
    /// Whether to attach it for stores; `None`: if possible.
    pub(super) writable: Option<bool>,
}

impl SlotBytes {
    fn of(&self, view: &mut indelible::AttachedView) -> Result<Bytes> {
        if self.writable != Some(false) {
            match view.bytes_mut(self.slot) {
                Err(error)
                    if self.writable.is_none()
                        && matches!(error.kind(), ErrorKind::ReadOnly | ErrorKind::Denied) => {}
                bytes => {
                    let bytes = bytes?;
                    return Ok(Bytes::new(bytes.as_mut_ptr().expose_provenance(), bytes.len(), true));
                }
            }
        }
        let bytes = view.bytes(self.slot)?;
        Ok(Bytes::new(bytes.as_ptr().expose_provenance(), bytes.len(), false))
    }
}

#[pymethods]
impl SlotBytes {
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let (slot, handle) = (slf.get(), &slf.get().view.get().handle);
        let lend = || handle.view(slf.py(), USE, |view| slot.of(view));
        // SAFETY: Python's.
        unsafe { buffer::give(view, flags, slf.as_any(), lend, || handle.forget_view()) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.view.get().handle.forget_view();
    }
}
