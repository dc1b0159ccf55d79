//! Warns programs that lose unpsynced changes, with the line that opened the object.

use crate::kept::{Dropped, Kept};
use crate::process;
use pyo3::exceptions::PyResourceWarning;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    MODULE
        .get_or_try_init(py, || Ok(py.import("indelible._unsynced")?.unbind()))
        .map(|module| module.bind(py))
}

#[derive(Clone, Default)]
pub(crate) struct Opened(Option<(String, u32)>);

impl Opened {
    pub(crate) fn here(py: Python<'_>) -> Opened {
        let line = || module(py)?.getattr(intern!(py, "line"))?.call0()?.extract();
        Opened(line().unwrap_or_default())
    }
}

/// Warns that changes are lost.
pub(crate) fn warn(py: Python<'_>, what: &str, opened: &Opened) -> PyResult<()> {
    let warn = module(py)?.getattr(intern!(py, "warn"))?;
    match warn.call1((what, opened.0.clone())) {
        // At the interpreter's end its modules are gone.
        Err(error) if !error.is_instance_of::<pyo3::exceptions::PyWarning>(py) => {
            let text = CString::new(
                format!("changes of {what} were not psynced: they are lost").replace('\0', "\\0"),
            )?;
            PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1)
        }
        done => done.map(drop),
    }
}

/// As [`warn`], where no exception can be raised: a pending one stays. Does nothing without an
/// interpreter.
pub(crate) fn warn_at_drop(what: &str, opened: &Opened) {
    Python::try_attach(|py| {
        let pending = PyErr::take(py);
        if let Err(error) = warn(py, what, opened) {
            error.write_unraisable(py, None);
        }
        pending.into_iter().for_each(|error| error.restore(py));
    });
}

/// Whether there are changes; a drop with some warns, in the process that made it.
pub(crate) struct Unsynced {
    some: AtomicBool,
    what: String,
    process: u32,
    opened: Opened,
    kept: Arc<Kept>,
}

impl Unsynced {
    /// For a thing just opened; its pool's block may keep its changes.
    pub(crate) fn new(py: Python<'_>, what: &str, kept: &Arc<Kept>) -> Self {
        Unsynced {
            some: AtomicBool::new(false),
            what: what.to_owned(),
            process: process::generation(),
            opened: Opened::here(py),
            kept: kept.clone(),
        }
    }

    pub(crate) fn set(&self, some: bool) {
        self.some.store(some, Ordering::Relaxed);
    }

    /// Warns if there are changes.
    pub(crate) fn lost(&self, py: Python<'_>) -> PyResult<()> {
        if self.some.swap(false, Ordering::Relaxed) { warn(py, &self.what, &self.opened) } else { Ok(()) }
    }

    /// Drops the last reference: the pool's block keeps the result of `open` if there are changes.
    pub(crate) fn dropped<T: Dropped + 'static>(&mut self, open: impl FnOnce() -> Option<T>) {
        if !*self.some.get_mut() || self.process != process::generation() {
            return;
        }
        if let Some(open) = open()
            && self.kept.keep_other(&self.what, open).is_ok()
        {
            *self.some.get_mut() = false;
        }
    }
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        if *self.some.get_mut() && self.process == process::generation() {
            warn_at_drop(&self.what, &self.opened);
        }
    }
}
