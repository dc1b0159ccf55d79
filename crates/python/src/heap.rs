//! The heap of an object, for the dict of `python/indelible/_dict.py`: blocks by offset, and one root.
//!
//! Invariants:
//! 1. `blocks` counts, by offset, the [`Block`]s that exist. It grows under the attachment's lock, after the
//!    heap said that the block is in use and as long as that.
//! 2. A block with a count is not freed.

#![allow(unsafe_code)]

use crate::attachment::{Attachment, Held};
use crate::buffer::{self, Bytes};
use crate::error::in_use;
use indelible::{Error, ErrorKind, TypeInfo};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard};

/// What the dict's root says it is. Its description is in crates/python/FORMAT.md.
const DICT: TypeInfo<'_> = TypeInfo {
    name: "indelible.dict",
    fingerprint: 0x7064_6963_742d_3031_0000_0000_0000_0001,
    layout: "header of a dict of Python, version 1: crates/python/FORMAT.md",
};
const ROOT: &str = "dict";

/// A heap in an attached object.
#[pyclass(frozen, module = "indelible._indelible")]
pub(crate) struct Heap {
    pub(crate) attachment: Arc<Attachment>,
    blocks: Arc<Counts>,
}

#[derive(Default)]
struct Counts(Mutex<HashMap<usize, usize>>);

impl Counts {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, usize>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Heap {
    pub(crate) fn new(name: &str, held: Held) -> Self {
        Heap { attachment: Arc::new(Attachment::new(name, held)), blocks: Arc::default() }
    }

    /// Does something with the heap of a writer.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        f: impl FnOnce(&indelible::Heap) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let result = self.attachment.with(py, operation, |held| match held {
            Held::Heap(heap) => f(heap).map(Some),
            _ => Ok(None),
        })?;
        result.ok_or_else(|| {
            crate::error::read_only(py, operation, &format!("object {:?}", self.attachment.name))
        })
    }
}

fn usable_size(held: &Held, offset: usize) -> Result<usize, Error> {
    let block = held.base().wrapping_add(offset);
    match held {
        Held::Heap(heap) => heap.usable_size(block),
        Held::ReadHeap(heap) => heap.usable_size(block),
        _ => Ok(0),
    }
}

#[pymethods]
impl Heap {
    /// Name of the object.
    #[getter]
    fn name(&self) -> &str {
        &self.attachment.name
    }

    /// The object's fixed address.
    #[getter]
    fn address(&self) -> usize {
        self.attachment.address
    }

    /// Size of the object in bytes.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.attachment.with(py, "inspect", |held| Ok(held.len()))
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

    /// Blocks in use by Python.
    #[getter]
    fn views(&self) -> usize {
        self.attachment.views()
    }

    /// Offset of a new block of at least `size` bytes, at a multiple of `align`.
    fn malloc(&self, py: Python<'_>, size: usize, align: usize) -> PyResult<usize> {
        self.with(py, "allocate in", |heap| {
            let block = heap.aligned(align, size)?;
            Ok(block.addr().get() - heap.base().addr())
        })
    }

    /// Frees the block at `offset`. BufferError while a `Block` refers to it.
    fn free(&self, py: Python<'_>, offset: usize) -> PyResult<()> {
        let counts = self.blocks.clone();
        let views = self.with(py, "free a block of", move |heap| {
            let counts = counts.lock();
            if let Some(views) = counts.get(&offset) {
                return Ok(*views);
            }
            let block = heap.base().wrapping_add(offset).cast_mut();
            // SAFETY: nobody can reach it (2), and nobody begins to while the lock is held (1). What else
            // refers to memory of the heap copies it, under the same lock.
            unsafe { heap.free(block)? };
            Ok(0)
        })?;
        match views {
            0 => Ok(()),
            views => Err(in_use("free", &format!("a block of object {:?}", self.attachment.name), views)),
        }
    }

    /// Bytes of the block at `offset`.
    fn usable_size(&self, py: Python<'_>, offset: usize) -> PyResult<usize> {
        self.attachment.with(py, "inspect a block of", |held| usable_size(held, offset))
    }

    /// Offsets of all blocks.
    fn blocks(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.attachment.with(py, "walk the heap of", |held| {
            let base = held.base().addr();
            match held {
                Held::Heap(heap) => heap.blocks().map(|block| Ok(block?.address - base)).collect(),
                Held::ReadHeap(heap) => heap.blocks().map(|block| Ok(block?.address - base)).collect(),
                _ => Ok(Vec::new()),
            }
        })
    }

    /// What is wrong in the heap's metadata.
    fn check(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.attachment.with(py, "check the heap of", |held| {
            let findings = match held {
                Held::Heap(heap) => heap.check(),
                Held::ReadHeap(heap) => heap.check(),
                _ => Vec::new(),
            };
            Ok(findings.iter().map(|finding| format!("{:#x}: {}", finding.offset, finding.what)).collect())
        })
    }

    /// Offset and size of the dict's root, None if there is none.
    fn root(&self, py: Python<'_>) -> PyResult<Option<(usize, u64)>> {
        self.attachment.with(py, "find the dict of", |held| {
            let found = match held {
                Held::Heap(heap) => heap.root(ROOT, &DICT),
                Held::ReadHeap(heap) => heap.root(ROOT, &DICT),
                _ => return Ok(None),
            };
            match found {
                Ok(root) => Ok(Some((root.address.wrapping_sub(held.base().addr()), root.size))),
                Err(error) if error.kind() == ErrorKind::RootMissing => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    /// Makes `size` bytes at `offset` the dict's root.
    fn create_root(&self, py: Python<'_>, offset: usize, size: u64) -> PyResult<()> {
        self.with(py, "create the dict of", |heap| {
            heap.create_root(ROOT, heap.base().wrapping_add(offset), size, &DICT)
        })
    }

    /// A copy of `size` bytes at `offset`.
    fn read<'py>(&self, py: Python<'py>, offset: usize, size: usize) -> PyResult<Bound<'py, PyBytes>> {
        let copy = self.attachment.with(py, "read", |held| {
            let part = Bytes::of(held).part(offset, size);
            Ok(part.map(|part| {
                let mut copy = vec![0; part.len()];
                // SAFETY: mapped while the lock is held; `copy` is as long and lies elsewhere.
                unsafe { part.as_ptr().copy_to_nonoverlapping(copy.as_mut_ptr(), part.len()) };
                copy
            }))
        })?;
        copy.map(|copy| PyBytes::new(py, &copy)).ok_or_else(|| self.outside(offset, size))
    }

    /// Stores `data` at `offset`.
    fn write(&self, py: Python<'_>, offset: usize, data: &[u8]) -> PyResult<()> {
        let done = self.with(py, "write", |heap| {
            let fits = offset.checked_add(data.len()).is_some_and(|end| end <= heap.size());
            if fits {
                let start = heap.base().wrapping_add(offset).cast_mut();
                // SAFETY: mapped for writing while the lock is held; `data` lies elsewhere. Bytes that are the
                // heap's own it would not believe.
                unsafe { start.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
            }
            Ok(fits)
        })?;
        if done { Ok(()) } else { Err(self.outside(offset, data.len())) }
    }

    /// `size` bytes of the block at `offset`, as a buffer. The block is not freed while it exists.
    fn block(&self, py: Python<'_>, offset: usize, size: usize) -> PyResult<Block> {
        let counts = self.blocks.clone();
        // The view is the Block, not what is exported of it.
        let bytes = self.attachment.view(py, "use a block of", |held| {
            let enough = usable_size(held, offset)? >= size;
            let bytes = Bytes::of(held).part(offset, size).filter(|_| enough);
            *counts.lock().entry(offset).or_default() += 1;
            Ok(bytes)
        })?;
        let block = Block {
            attachment: self.attachment.clone(),
            blocks: self.blocks.clone(),
            offset,
            bytes: bytes.unwrap_or(Bytes::NONE),
        };
        if bytes.is_some() {
            return Ok(block);
        }
        Err(PyValueError::new_err(format!("the block at {offset:#x} has less than {size} bytes")))
    }

    /// Makes everything stored since the last psync durable, as one step, without the GIL.
    #[pyo3(signature = (*, cut = false))]
    fn psync(&self, py: Python<'_>, cut: bool) -> PyResult<()> {
        self.attachment.with(py, "psync", |held| crate::psync::one(held, cut))
    }

    /// Grows the object and the heap.
    fn grow(&self, py: Python<'_>, size: u64) -> PyResult<()> {
        self.attachment.grow(py, size)
    }

    /// Detaches; what was not psynced is forgotten. BufferError while blocks of it are in use.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.attachment.close(py)
    }

    /// Detaches when the last block in use is gone, and refuses everything else from now on.
    fn close_with_the_last_view(&self, py: Python<'_>) -> PyResult<()> {
        self.attachment.close_with_the_last_view(py)
    }
}

impl Heap {
    fn outside(&self, offset: usize, size: usize) -> PyErr {
        let name = &self.attachment.name;
        PyIndexError::new_err(format!("{size} bytes at {offset:#x} do not lie in object {name:?}"))
    }
}

/// A block in use by Python, as a buffer.
#[pyclass(frozen, weakref, module = "indelible._indelible")]
pub(crate) struct Block {
    attachment: Arc<Attachment>,
    blocks: Arc<Counts>,
    offset: usize,
    bytes: Bytes,
}

#[pymethods]
impl Block {
    /// Where it lies in the object.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    fn __len__(&self) -> usize {
        self.bytes.len()
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let block = slf.get();
        let bytes = block.bytes;
        // SAFETY: Python's.
        unsafe { buffer::give(view, flags, slf.as_any(), &block.attachment, |_| Ok(bytes)) }
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
        let mut counts = self.blocks.lock();
        if let Some(count) = counts.get_mut(&self.offset) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.offset);
            }
        }
        drop(counts);
        self.attachment.forget_view();
    }
}
