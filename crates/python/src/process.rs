//! Identifies this process without a system call.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Number of forks since the import of the package.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

#[pyfunction]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let arguments = pyo3::types::PyDict::new(module.py());
    arguments.set_item("after_in_child", pyo3::wrap_pyfunction!(forked, module)?)?;
    module.py().import("os")?.getattr("register_at_fork")?.call((), Some(&arguments))?;
    Ok(())
}
