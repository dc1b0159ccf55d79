//! Queues of messages.

use super::consumer::Consumer;
use super::object::Shared;
use super::producer::Producer;
use crate::error::{exception, forked};
use crate::process;
use indelible::{QueueKind, QueueOptions};
use pyo3::prelude::*;

pub(super) fn options(slots: usize, most: usize, one_producer: bool) -> QueueOptions {
    let kind = if one_producer { QueueKind::OneProducer } else { QueueKind::ManyProducers };
    QueueOptions { kind, slots, most }
}

/// Bytes of an object for a queue: see `Pool.queue`.
#[pyfunction]
pub(crate) fn _queue_bytes(py: Python<'_>, slots: usize, most: usize, one_producer: bool) -> PyResult<usize> {
    options(slots, most, one_producer).bytes().map_err(|error| exception(py, &error))
}

/// A queue in a shared object: messages of up to `most` bytes, from producers of any processes, in
/// order to one consumer. Made by `Pool.queue` or `Shared.queue`.
///
/// Each of them may die at any instruction: an unfinished message is left out, and the next
/// consumer continues after the last one.
#[pyclass(frozen, weakref, module = "indelible")]
pub(crate) struct Queue {
    queue: indelible::Queue,
    shared: Py<Shared>,
    offset: usize,
    process: u32,
}

impl Queue {
    pub(super) fn new(queue: indelible::Queue, shared: Py<Shared>, offset: usize) -> Self {
        Queue { queue, shared, offset, process: process::generation() }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        operation: &str,
        f: impl FnOnce(&indelible::Queue) -> indelible::Result<T> + Send,
    ) -> PyResult<T> {
        if self.process != process::generation() {
            return Err(forked(py, operation, "the queue"));
        }
        py.detach(|| f(&self.queue)).map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl Queue {
    #[getter]
    fn shared(&self, py: Python<'_>) -> Py<Shared> {
        self.shared.clone_ref(py)
    }

    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// Most messages that it holds.
    #[getter]
    fn slots(&self) -> usize {
        self.queue.options().slots
    }

    /// Bytes of the longest message.
    #[getter]
    fn most(&self) -> usize {
        self.queue.options().most
    }

    /// Whether it has one producer at a time.
    #[getter]
    fn one_producer(&self) -> bool {
        self.queue.options().kind == QueueKind::OneProducer
    }

    /// The queue's random number.
    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, "inspect", |queue| Ok(queue.id()))
    }

    /// Messages left out so far because their producers died.
    #[getter]
    fn skipped(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, "inspect", |queue| Ok(queue.skipped()))
    }

    /// A producer. A queue of one producer has one until it is closed, or its process dies: Held
    /// meanwhile.
    fn producer(&self, py: Python<'_>) -> PyResult<Producer> {
        Ok(Producer::new(self.with(py, "put messages into", indelible::Queue::producer)?))
    }

    /// The consumer. A queue has one until it is closed, or its process dies: Held meanwhile.
    fn consumer(&self, py: Python<'_>) -> PyResult<Consumer> {
        Ok(Consumer::new(self.with(py, "take messages out of", indelible::Queue::consumer)?))
    }

    fn __repr__(&self) -> String {
        let (slots, most, name) = (self.slots(), self.most(), self.shared.get().name_of());
        format!("<indelible.Queue in {name:?} at {}, {slots} messages of up to {most} bytes>", self.offset)
    }
}
