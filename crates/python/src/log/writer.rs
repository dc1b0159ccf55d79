//! The writer of a log.

use crate::handle::Handle;
use crate::kept::Dropped;
use crate::patience::timeout;
use crate::pool::Pool;
use crate::shared::{Consumer, message};
use crate::unsynced::Unsynced;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::Duration;

/// A log, attached for appending. Made by `Pool.log`; a context manager, which psyncs and closes
/// it.
///
/// Records are durable once `psync` returns; a power cut or a death before that leaves the records
/// of some psync.
#[pyclass(frozen, weakref, module = "indelible")]
pub(crate) struct Log {
    handle: Handle<Open>,
    pool: Py<Pool>,
    name: String,
    /// Whether appended records are not durable.
    unsynced: Unsynced,
}

struct Open {
    log: indelible::Log,
    /// Messages appended but not returned: a psync failed.
    collected: Vec<Vec<u8>>,
}

#[pyfunction]
pub(crate) fn _open_log(pool: &Bound<'_, Pool>, name: &str, key: Option<&[u8]>) -> PyResult<Log> {
    let log = pool.get().with(pool.py(), "attach", |pool| pool.open_log(name, key.unwrap_or_default()))?;
    let what = format!("log {name:?}");
    Ok(Log {
        unsynced: Unsynced::new(pool.py(), &what, &pool.get().kept),
        handle: Handle::new(what, Open { log, collected: Vec::new() }),
        pool: pool.clone().unbind(),
        name: name.to_owned(),
    })
}

#[pymethods]
impl Log {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn pool(&self, py: Python<'_>) -> Py<Pool> {
        self.pool.clone_ref(py)
    }

    /// Appends a record, any object with a buffer, durable at the next psync; returns its number,
    /// from 0 on. The object grows.
    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        let record = message(record)?;
        let bytes = record.as_bytes();
        self.handle.with(py, "append to", |open| {
            let number = open.log.append(bytes)?;
            self.unsynced.set(true);
            Ok(number)
        })
    }

    /// Makes all appended records durable.
    fn psync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.with(py, "psync", |open| {
            open.log.psync()?;
            self.unsynced.set(false);
            Ok(())
        })
    }

    /// Waits up to `timeout` seconds, or without limit, for a message of a queue. Appends it, and
    /// up to `most` messages in all that are there, makes them durable by one psync, then takes
    /// them out of the queue: a message that `Producer.wait_taken` reports as taken is in the log.
    /// Returns the messages; none after the timeout.
    ///
    /// Messages that a dead collector made durable but did not take out are neither appended nor
    /// returned again, if the log has collected from no other queue since. After an error the
    /// messages stay in the queue.
    #[pyo3(signature = (consumer, most = 256, timeout = None))]
    fn collect<'py>(
        &self,
        py: Python<'py>,
        consumer: &Bound<'py, Consumer>,
        most: usize,
        timeout: Option<f64>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        if most == 0 {
            return Err(PyValueError::new_err("collect takes at least one message: most is 0"));
        }
        let (timeout, consumer) = (self::timeout(timeout)?, &consumer.get().handle);
        let collect = |left: Duration| {
            self.handle.with_other(py, "collect messages in", consumer, |open, consumer| {
                let Open { log, collected } = open;
                let before = log.len();
                let each = |message: &[u8]| collected.push(message.to_vec());
                match log.collect_each(consumer, most, Some(left), each) {
                    Ok(0) => Ok(None),
                    Ok(_) => {
                        self.unsynced.set(false);
                        Ok(Some(std::mem::take(collected)))
                    }
                    Err(error) => {
                        if log.len() > before {
                            self.unsynced.set(true);
                        }
                        Err(error)
                    }
                }
            })
        };
        let collected = crate::patience::wait(py, timeout, collect)?.unwrap_or_default();
        Ok(collected.iter().map(|message| PyBytes::new(py, message)).collect())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.handle.with(py, "inspect", |open| Ok(open.log.len() as usize))
    }

    fn __bool__(&self) -> bool {
        true
    }

    /// Whether it was closed, or belongs to another process.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Detaches; unpsynced records are lost.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py, self.pool.get().table(), |open| open.log.detach())?;
        self.unsynced.lost(py)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Psyncs and closes; on an exception nothing is psynced.
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Bound<'_, PyAny>,
        _value: Bound<'_, PyAny>,
        _traceback: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        match exception.is_none() {
            true if !self.closed() => self.psync(py)?,
            true => {}
            false => self.unsynced.set(false),
        }
        self.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.__len__(py) {
            Ok(records) => format!("<indelible.Log {:?}, {records} records>", self.name),
            Err(_) => format!("<indelible.Log {:?}, closed>", self.name),
        }
    }
}

impl Dropped for Open {
    fn psync(&mut self) -> indelible::Result<()> {
        self.log.psync()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let handle = &self.handle;
        self.unsynced.dropped(|| handle.take());
    }
}
