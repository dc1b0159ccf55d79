//! Objects that processes share: words to wait for, lives, queues.

mod consumer;
mod event;
mod life;
mod object;
mod producer;
mod queue;
mod stream;
mod word;

pub(crate) use consumer::Consumer;
pub(crate) use event::Event;
pub(crate) use life::Life;
pub(crate) use object::{_attach_shared, Shared};
pub(crate) use producer::Producer;
pub(crate) use queue::{_queue_bytes, Queue};
pub(crate) use stream::StreamBytes;
pub(crate) use word::{Word, wait_any};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};

/// The asyncio coroutine or iterator of the package's Python half with that name.
fn asyncio<'py>(py: Python<'py>, name: &str, with: impl PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    py.import("indelible._asyncio")?.getattr(name)?.call1(with)
}

/// The bytes of a message: those of any object with a buffer.
pub(crate) fn message<'py>(of: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    match of.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        // Elements of any type, in order, also scattered ones.
        Err(_) => Ok(PyMemoryView::from(of)?.call_method0("tobytes")?.cast_into()?),
    }
}
