//! An attached object that processes share.

#![allow(unsafe_code)]

use super::event::Event;
use super::life::Life;
use super::queue::Queue;
use super::word::Word;
use crate::buffer::{self, Bytes, USE};
use crate::handle::Handle;
use crate::patience::timeout;
use crate::pool::Pool;
use indelible::{Class, CreateOptions, ErrorKind, SharedObject};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// Memory shared by processes at one address; a buffer of its bytes. Made by `Pool.shared`. Nothing
/// in it becomes durable.
///
/// Any process may store to any byte at any moment: a `word` changes as a whole, and can be waited
/// for; a `queue` has messages. Words, queues and lives taken from it keep the memory.
#[pyclass(frozen, weakref, module = "indelible")]
pub(crate) struct Shared {
    handle: Handle<SharedObject>,
    pool: Py<Pool>,
    name: String,
    address: usize,
    size: usize,
}

#[pyfunction]
pub(crate) fn _attach_shared(
    pool: &Bound<'_, Pool>,
    name: &str,
    size: Option<u64>,
    key: Option<&[u8]>,
) -> PyResult<Shared> {
    let key = key.unwrap_or_default();
    let object = pool.get().with(pool.py(), "attach", |pool| attach(pool, name, size, key))?;
    Ok(Shared {
        address: object.as_ptr().expose_provenance(),
        size: object.len(),
        handle: Handle::new(format!("shared object {name:?}"), object),
        pool: pool.clone().unbind(),
        name: name.to_owned(),
    })
}

/// Attaches; with `create` makes a missing object, or one of an earlier boot.
fn attach(
    pool: &indelible::Pool,
    name: &str,
    size: Option<u64>,
    key: &[u8],
) -> indelible::Result<SharedObject> {
    match (pool.attach_shared_with_key(name, key), size) {
        (Err(error), Some(size)) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::VolatileGone) => {
            match pool.create_with(name, &CreateOptions::new(size).class(Class::Shared).key(key)) {
                // Another process made it.
                Err(error) if error.kind() == ErrorKind::Exists => {}
                created => created?,
            }
            pool.attach_shared_with_key(name, key)
        }
        (attached, _) => attached,
    }
}

impl Shared {
    pub(super) fn name_of(&self) -> &str {
        &self.name
    }

    /// The object, for values that keep it themselves.
    fn object(&self, py: Python<'_>, operation: &str) -> PyResult<SharedObject> {
        self.handle.with(py, operation, |object| Ok(object.clone()))
    }
}

#[pymethods]
impl Shared {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Its fixed address, the same in every process.
    #[getter]
    fn address(&self) -> usize {
        self.address
    }

    /// Size in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    fn __len__(&self) -> usize {
        self.size
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Arrays and memoryviews of it in use.
    #[getter]
    fn views(&self) -> usize {
        self.handle.views()
    }

    /// Checks that the memory is whole: bytes of a truncated file are zeros, and this is Gone. All
    /// other calls check by themselves; call this after direct reads of the bytes.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, "check", |object| object.check())
    }

    /// The four bytes at `offset`, a multiple of 4, as a word.
    fn word(&self, py: Python<'_>, offset: usize) -> PyResult<Word> {
        let object = self.handle.with(py, "use a word of", |object| {
            object.word(offset)?;
            Ok(object.clone())
        })?;
        Ok(Word::new(object, offset))
    }

    /// A file descriptor that becomes readable when the word at `offset` differs from `seen` and
    /// its waiters are woken: for select, poll and asyncio.
    fn event(&self, py: Python<'_>, offset: usize, seen: u32) -> PyResult<Event> {
        Event::new(self.handle.with(py, "watch a word of", |object| object.event(offset, seen))?, &self.name)
    }

    /// The queue at `offset`, a multiple of 64; made if missing. All users give the same options:
    /// see `Pool.queue`.
    #[pyo3(signature = (offset = 0, *, slots = 1024, most = 64, one_producer = false))]
    fn queue(
        slf: &Bound<'_, Self>,
        offset: usize,
        slots: usize,
        most: usize,
        one_producer: bool,
    ) -> PyResult<Queue> {
        let options = super::queue::options(slots, most, one_producer);
        let queue =
            slf.get().handle.with(slf.py(), "open a queue in", |object| object.queue(offset, &options))?;
        Ok(Queue::new(queue, slf.clone().unbind(), offset))
    }

    /// The number of this process's life, which ends once it has released the object everywhere.
    /// Unlike process IDs it is never reused.
    #[getter]
    fn life(&self, py: Python<'_>) -> PyResult<u32> {
        self.handle.with(py, "inspect", |object| Ok(object.life()))
    }

    /// Begins a life, for example of a thread, whose end other processes notice. It ends by
    /// `Life.end`, with its last reference, or with the process.
    fn begin_life(&self, py: Python<'_>) -> PyResult<Life> {
        Ok(Life::new(self.handle.with(py, "begin a life in", |object| object.begin_life())?))
    }

    /// Whether the life of this number, in any process, goes on.
    fn is_alive(&self, py: Python<'_>, number: u32) -> PyResult<bool> {
        self.handle.with(py, "look for a life in", |object| object.is_alive(number))
    }

    /// Waits up to `timeout` seconds, by default without limit, for the end of this life; returns
    /// whether it has ended. A death is noticed within 10 ms.
    #[pyo3(signature = (number, timeout = None))]
    fn wait_end(&self, py: Python<'_>, number: u32, timeout: Option<f64>) -> PyResult<bool> {
        let object = self.object(py, "wait for the end of a life in")?;
        let ended = crate::patience::wait(py, self::timeout(timeout)?, |left| {
            let ended = py.detach(|| object.wait_end(number, Some(left)));
            Ok(ended.map_err(|error| crate::error::exception(py, &error))?.then_some(()))
        })?;
        Ok(ended.is_some())
    }

    /// Releases it, and the memory, unless words, queues or lives are left. The memory stays in the
    /// machine until the object is removed. BufferError while arrays or memoryviews of it exist.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, self.pool.get().table())
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Closes. After an exception it is closed with the last of its arrays.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if exception.is_none() { self.close(py) } else { self.handle.abandon(py) }
    }

    fn __repr__(&self) -> String {
        match self.closed() {
            false => format!("<indelible.Shared {:?}, {} bytes>", self.name, self.size),
            true => format!("<indelible.Shared {:?}, closed>", self.name),
        }
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let shared = slf.get();
        // Mapped while attached.
        let bytes = Bytes::new(shared.address, shared.size, true);
        let lend = || shared.handle.view(slf.py(), USE, |_| Ok(bytes));
        // SAFETY: Python's.
        unsafe { buffer::give(view, flags, slf.as_any(), lend, || shared.handle.forget_view()) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.handle.forget_view();
    }
}
