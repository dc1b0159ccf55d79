//! Keys of sealed objects.

use crate::error::exception;
use indelible::SlotInfo;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A key that opens sealed objects. Its representation, errors and tracebacks have nothing of it; it cannot be pickled, and is overwritten when it
/// goes. The str or bytes that it was made of stay in Python's memory: prefer a file.
#[pyclass(frozen, module = "indelible")]
pub(crate) struct SealKey {
    pub(crate) key: indelible::SealKey,
    from: &'static str,
}

/// A failure of a file, as Python has them for its own.
fn os_error(py: Python<'_>, path: &std::path::Path, error: &indelible::Error) -> PyErr {
    let system = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match system.and_then(io::Error::raw_os_error) {
        Some(number) => {
            let text = system.map(ToString::to_string).unwrap_or_default();
            PyOSError::new_err((number, text, path.to_string_lossy().into_owned()))
        }
        None => exception(py, error),
    }
}

impl SealKey {
    fn made(
        py: Python<'_>,
        key: indelible::Result<indelible::SealKey>,
        from: &'static str,
    ) -> PyResult<Self> {
        key.map(|key| SealKey { key, from }).map_err(|error| exception(py, &error))
    }
}

#[pymethods]
impl SealKey {
    /// The contents of a key file: 32 random bytes or more, all of which count.
    #[staticmethod]
    fn file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let key = py.detach(|| indelible::SealKey::from_file(&path));
        key.map(|key| SealKey { key, from: "key file" }).map_err(|error| os_error(py, &path, &error))
    }

    /// The bytes of a key file.
    #[staticmethod]
    fn bytes(py: Python<'_>, contents: &[u8]) -> PyResult<Self> {
        SealKey::made(py, indelible::SealKey::file(contents.to_vec()), "bytes")
    }

    /// A passphrase. Opening an object by it takes some tenths of a second.
    #[staticmethod]
    fn passphrase(py: Python<'_>, text: String) -> PyResult<Self> {
        SealKey::made(py, indelible::SealKey::passphrase(text), "passphrase")
    }

    /// The standard output of a command, which /bin/sh runs without a standard input, and which is killed after `timeout` seconds.
    #[staticmethod]
    #[pyo3(signature = (command, *, timeout = 60.0))]
    fn command(py: Python<'_>, command: &str, timeout: f64) -> PyResult<Self> {
        let why = |_| PyValueError::new_err("timeout is a number of seconds, not negative");
        let timeout = Duration::try_from_secs_f64(timeout).map_err(why)?;
        SealKey::made(py, py.detach(|| indelible::SealKey::command(command, timeout)), "command")
    }

    /// The credential that systemd gave to this service under that name.
    #[staticmethod]
    fn credential(py: Python<'_>, name: &str) -> PyResult<Self> {
        SealKey::made(py, py.detach(|| indelible::SealKey::credential(name)), "credential")
    }

    /// The TPM 2.0 of this machine, or the device or socket of another one.
    #[staticmethod]
    #[pyo3(signature = (path = None))]
    fn tpm(py: Python<'_>, path: Option<PathBuf>) -> PyResult<Self> {
        SealKey::made(py, indelible::SealKey::tpm(path.as_deref()), "TPM")
    }

    fn __repr__(&self) -> String {
        format!("<indelible.SealKey, {}>", self.from)
    }
}

/// A slot of an object: number, kind, label, seconds since 1970, whether it is damaged.
pub(crate) type Slot = (usize, String, String, u64, bool);

/// For Python.
pub(crate) fn slot(info: SlotInfo) -> Slot {
    (info.slot, info.kind_word(), info.label, info.created, info.damaged)
}
