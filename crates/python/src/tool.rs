//! The commands `pmo` and `mkpmo`, so that the wheel has them, too.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs `pmo` with these arguments, its own name first, and returns its exit code.
#[pyfunction]
pub(crate) fn pmo(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| indelible_cli::pmo(arguments))
}

/// Runs `mkpmo`, as `pmo`.
#[pyfunction]
pub(crate) fn mkpmo(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| indelible_cli::mkpmo(arguments))
}
