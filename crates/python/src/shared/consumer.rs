//! The receiving side of a queue.

use super::asyncio;
use crate::handle::Handle;
use crate::patience::timeout;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Takes messages out of a queue. Made by `Queue.consumer`; a context manager, which closes it.
/// Iterates over messages, and waits for each.
///
/// `receive` takes a message out at once. To act upon messages first, `look` at them, then
/// `release` them: a consumer that dies in between leaves them to the next one.
#[pyclass(frozen, weakref, module = "indelible")]
pub(crate) struct Consumer {
    pub(crate) handle: Handle<indelible::Consumer>,
}

impl Consumer {
    pub(super) fn new(consumer: indelible::Consumer) -> Self {
        Consumer { handle: Handle::new("the consumer of a queue".to_owned(), consumer) }
    }
}

const TAKE: &str = "take a message out of";

#[pymethods]
impl Consumer {
    /// Takes the next message out; waits up to `timeout` seconds, by default without limit. None:
    /// there was none.
    #[pyo3(signature = (timeout = None))]
    fn receive<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let received = self.handle.wait(py, TAKE, self::timeout(timeout)?, |consumer, left| {
            let mut message = Vec::new();
            Ok(consumer.receive(&mut message, Some(left))?.then_some(message))
        })?;
        Ok(received.map(|message| PyBytes::new(py, &message)))
    }

    /// The next message that it has not looked at, and its number; waits up to `timeout` seconds,
    /// by default without limit. None: there was none. The message stays in the queue until
    /// `release`; at most as many can be looked at as the queue holds.
    #[pyo3(signature = (timeout = None))]
    fn look<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<(u64, Bound<'py, PyBytes>)>> {
        let seen = self.handle.wait(py, TAKE, self::timeout(timeout)?, |consumer, left| {
            let mut message = Vec::new();
            Ok(consumer.look(&mut message, Some(left))?.map(|number| (number, message)))
        })?;
        Ok(seen.map(|(number, message)| (number, PyBytes::new(py, &message))))
    }

    /// Takes out all messages looked at; their producers learn it (`Producer.wait_taken`).
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, TAKE, indelible::Consumer::release)
    }

    /// Makes `look` begin again with the first message not released.
    fn rewind(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, TAKE, |consumer| {
            consumer.rewind();
            Ok(())
        })
    }

    /// Waits up to `timeout` seconds for a message, and takes none. Messages looked at are looked
    /// at again.
    fn _is_ready(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let seen = self.handle.wait(py, TAKE, self::timeout(Some(timeout))?, |consumer, left| {
            let seen = consumer.look(&mut Vec::new(), Some(left))?;
            consumer.rewind();
            Ok(seen)
        })?;
        Ok(seen.is_some())
    }

    /// Takes the next message out; waits up to `timeout` seconds, while other tasks of asyncio run.
    /// None: there was none. A cancelled task takes none.
    #[pyo3(signature = (timeout = None))]
    fn receive_async(slf: Bound<'_, Self>, timeout: Option<f64>) -> PyResult<Bound<'_, PyAny>> {
        asyncio(slf.py(), "receive", (slf, timeout))
    }

    fn __aiter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, PyAny>> {
        asyncio(slf.py(), "messages", (slf,))
    }

    /// Takes messages out one by one, until none comes within `timeout` seconds; 0: those that are
    /// there.
    fn messages(slf: Bound<'_, Self>, timeout: f64) -> PyResult<Messages> {
        self::timeout(Some(timeout))?;
        Ok(Messages { consumer: slf.unbind(), timeout: Some(timeout) })
    }

    fn __iter__(slf: Bound<'_, Self>) -> Messages {
        Messages { consumer: slf.unbind(), timeout: None }
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Ends its use of the queue, for another consumer. Messages not released stay in the queue.
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

#[pyclass(frozen, module = "indelible._indelible")]
pub(crate) struct Messages {
    consumer: Py<Consumer>,
    timeout: Option<f64>,
}

#[pymethods]
impl Messages {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.consumer.get().receive(py, self.timeout)
    }
}
