//! Progress of long calls, told to a Python function. An exception of that function, or of a signal
//! handler, ends the call: it unwinds as a failing read would, and drops locks and hidden objects.

use crate::patience::LOOK;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

/// The payload of that unwinding.
struct Ended(PyErr);

/// A Python function to tell, if any.
pub(crate) struct Progress {
    function: Option<Py<PyAny>>,
    /// The last look for signals.
    looked: Instant,
}

impl Progress {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Progress {
        Progress { function, looked: Instant::now() }
    }

    /// Makes a call that tells its progress; the inner error is the exception that ended it.
    pub(crate) fn run<T>(
        &mut self,
        call: impl FnOnce(&mut dyn FnMut(u64, u64)) -> indelible::Result<T>,
    ) -> indelible::Result<PyResult<T>> {
        let mut tell = |done, total| {
            if let Err(error) = self.tell(done, total) {
                resume_unwind(Box::new(Ended(error)));
            }
        };
        match catch_unwind(AssertUnwindSafe(|| call(&mut tell))) {
            Ok(done) => done.map(Ok),
            Err(payload) => match payload.downcast::<Ended>() {
                Ok(ended) => Ok(Err(ended.0)),
                Err(panic) => resume_unwind(panic),
            },
        }
    }

    fn tell(&mut self, done: u64, total: u64) -> PyResult<()> {
        let due = self.looked.elapsed() >= LOOK;
        if self.function.is_none() && !due {
            return Ok(());
        }
        Python::attach(|py| {
            if due {
                py.check_signals()?;
                self.looked = Instant::now();
            }
            self.function.as_ref().map_or(Ok(()), |tell| tell.call1(py, (done, total)).map(drop))
        })
    }
}
