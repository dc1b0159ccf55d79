//! The sending side of a queue.

use super::{asyncio, message};
use crate::handle::Handle;
use crate::patience::timeout;
use pyo3::prelude::*;

/// Puts messages into a queue. Made by `Queue.producer`; a context manager, which closes it.
/// Threads that share it wait for each other: give each its own.
#[pyclass(frozen, weakref, module = "indelible")]
pub(crate) struct Producer {
    handle: Handle<indelible::Producer>,
}

impl Producer {
    pub(super) fn new(producer: indelible::Producer) -> Self {
        Producer { handle: Handle::new("the producer of a queue".to_owned(), producer) }
    }
}

#[pymethods]
impl Producer {
    /// Puts a message in; waits up to `timeout` seconds for room, by default without limit. Returns
    /// the message's number for `wait_taken`; None if the queue stayed full.
    ///
    /// A message is any object with a buffer: bytes, bytearray, memoryview, numpy array. It
    /// outlives this process.
    #[pyo3(signature = (message, timeout = None))]
    fn send(
        &self,
        py: Python<'_>,
        message: &Bound<'_, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Option<u64>> {
        let (timeout, message) = (self::timeout(timeout)?, self::message(message)?);
        let bytes = message.as_bytes();
        self.handle.wait(py, "put a message into", timeout, |producer, left| producer.send(bytes, Some(left)))
    }

    /// As `send`; other tasks of asyncio run while the queue is full. A cancelled task puts none
    /// in.
    #[pyo3(signature = (message, timeout = None))]
    fn send_async<'py>(
        slf: Bound<'py, Self>,
        message: Bound<'py, PyAny>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        asyncio(slf.py(), "send", (slf, message, timeout))
    }

    /// Waits up to `timeout` seconds, by default without limit, until this message and all before
    /// it were taken out; returns whether they were. A message taken out by `Log.collect` is
    /// durable.
    #[pyo3(signature = (number, timeout = None))]
    fn wait_taken(&self, py: Python<'_>, number: u64, timeout: Option<f64>) -> PyResult<bool> {
        let taken = self.handle.wait(py, "wait for", self::timeout(timeout)?, |producer, left| {
            Ok(producer.wait_taken(number, Some(left))?.then_some(()))
        })?;
        Ok(taken.is_some())
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Ends its use of the queue. The messages stay.
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
