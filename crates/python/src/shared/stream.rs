//! The bytes of a stream, whose parts are the messages of a queue: `_stream.py` reads them as a
//! file.

use super::Consumer;
use crate::patience::timeout;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The reading side of a stream. A call is one step for signals of Python: no handler runs between
/// taking a message and storing its bytes.
#[pyclass(frozen, module = "indelible._indelible")]
pub(crate) struct StreamBytes {
    consumer: Py<Consumer>,
    timeout: Option<Duration>,
    part: Mutex<Part>,
}

#[derive(Default)]
struct Part {
    bytes: Vec<u8>,
    read: usize,
    ended: bool,
    closed: bool,
}

impl StreamBytes {
    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl StreamBytes {
    #[new]
    fn new(consumer: Py<Consumer>, timeout: Option<f64>) -> PyResult<Self> {
        Ok(StreamBytes { consumer, timeout: self::timeout(timeout)?, part: Mutex::default() })
    }

    /// Fills in the bytes that are there, or come first; returns their number, 0 at the end of the
    /// stream.
    fn readinto(&self, py: Python<'_>, into: &Bound<'_, PyAny>) -> PyResult<usize> {
        let room = PyMemoryView::from(into)?.call_method1("cast", ("B",))?;
        let room_len = room.len()?;
        let wants = {
            let part = self.part();
            if part.closed {
                return Err(PyValueError::new_err("I/O operation on closed file"));
            }
            if room_len == 0 || (part.ended && part.read == part.bytes.len()) {
                return Ok(0);
            }
            part.read == part.bytes.len()
        };
        if wants {
            let received =
                self.consumer.get().handle.wait(py, "read a stream of", self.timeout, |consumer, left| {
                    let mut message = Vec::new();
                    if !consumer.receive(&mut message, Some(left))? {
                        return Ok(None);
                    }
                    let mut part = self.part();
                    part.ended = message.is_empty();
                    (part.bytes, part.read) = (message, 0);
                    Ok(Some(()))
                })?;
            if received.is_none() {
                return Err(PyTimeoutError::new_err("nothing was written to the stream"));
            }
        }
        let mut part = self.part();
        let count = room_len.min(part.bytes.len() - part.read);
        let piece = room.get_item(PySlice::new(py, 0, count as isize, 1))?;
        let end = part.read + count;
        PyBuffer::<u8>::get(&piece)?.copy_from_slice(py, &part.bytes[part.read..end])?;
        part.read = end;
        Ok(count)
    }

    /// Stops reading.
    fn close(&self) {
        self.part().closed = true;
    }
}
