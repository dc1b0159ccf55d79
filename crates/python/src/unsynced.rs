//! Changes that wait for a psync: whoever loses them is warned.

use crate::process;
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says that the changes of something are lost.
pub(crate) fn warn(py: Python<'_>, what: &str) -> PyResult<()> {
    let text = format!(
        "{what} is detached with changes that were not psynced: they are lost (psync it, or use it in a with block)"
    );
    let text = CString::new(text.replace('\0', "\\0"))?;
    PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1)
}

/// The same where nobody can be raised an exception. One that is under way stays so. Without an interpreter there is nobody to be warned.
pub(crate) fn warn_at_drop(what: &str) {
    Python::try_attach(|py| {
        let pending = PyErr::take(py);
        if let Err(error) = warn(py, what) {
            error.write_unraisable(py, None);
        }
        pending.into_iter().for_each(|error| error.restore(py));
    });
}

/// Whether there are any; dropping it with some warns, in the process that made it.
pub(crate) struct Unsynced {
    some: AtomicBool,
    what: String,
    process: u32,
}

impl Unsynced {
    pub(crate) fn new(what: &str) -> Self {
        Unsynced { some: AtomicBool::new(false), what: what.to_owned(), process: process::generation() }
    }

    pub(crate) fn set(&self, some: bool) {
        self.some.store(some, Ordering::Relaxed);
    }

    /// They are lost now, if there are any.
    pub(crate) fn lost(&self, py: Python<'_>) -> PyResult<()> {
        if self.some.swap(false, Ordering::Relaxed) { warn(py, &self.what) } else { Ok(()) }
    }
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        if *self.some.get_mut() && self.process == process::generation() {
            warn_at_drop(&self.what);
        }
    }
}
