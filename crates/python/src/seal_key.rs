//! Keys of sealed objects.

use crate::error::exception;
use indelible::{CommandAnchor, FileAnchor, SlotInfo, TpmAnchor};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// A key that opens sealed objects. Its representation, errors and tracebacks do not show it; it
/// cannot be pickled, and is overwritten when it goes. The str or bytes that it was made of stay in
/// Python's memory: prefer a file.
#[pyclass(frozen, module = "indelible")]
pub(crate) struct SealKey {
    pub(crate) key: indelible::SealKey,
    from: &'static str,
}

fn span(what: &str, seconds: f64) -> PyResult<Duration> {
    let why = |_| PyValueError::new_err(format!("{what} is a number of seconds, not negative"));
    Duration::try_from_secs_f64(seconds).map_err(why)
}

/// A failure of a file, as Python's own.
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

    /// A passphrase. Opening an object by it takes some tenths of a second. Its slots cost `memory`
    /// bytes and `passes` of Argon2id. A slot that costs more than 256 MiB, or five times the usual
    /// work, perhaps forged, opens only by a passphrase of that cost.
    #[staticmethod]
    #[pyo3(signature = (text, *, memory = 64 << 20, passes = 3))]
    fn passphrase(py: Python<'_>, text: String, memory: u64, passes: u32) -> PyResult<Self> {
        let memory = u32::try_from(memory >> 10).unwrap_or(u32::MAX);
        let cost = indelible::Cost { memory, passes, lanes: 1 };
        SealKey::made(
            py,
            indelible::SealKey::passphrase(text).and_then(|key| key.costing(cost)),
            "passphrase",
        )
    }

    /// The standard output of a command, run by /bin/sh without standard input, and killed after
    /// `timeout` seconds.
    #[staticmethod]
    #[pyo3(signature = (command, *, timeout = 60.0))]
    fn command(py: Python<'_>, command: &str, timeout: f64) -> PyResult<Self> {
        let timeout = span("timeout", timeout)?;
        SealKey::made(py, py.detach(|| indelible::SealKey::command(command, timeout)), "command")
    }

    /// The credential of that name that systemd gave to this service.
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

    /// The same key with an object's anchor outside of the pool, which tells an older state of the
    /// object from the newest (`PoolBehind`): the file at the path `file`, out of reach of
    /// attackers who can restore the pool; a shell `command`, which reads `get`, or `put` and a
    /// record, and answers with the record or `stored` within `timeout` seconds; or a `file`
    /// anywhere, with the index of a counter of the machine's TPM 2.0, or of the device or socket
    /// `tpm`. `interval`: seconds between records, 60, or 3600 with a TPM, which wears.
    #[pyo3(signature = (file = None, *, command = None, timeout = 60.0, tpm_index = None, tpm = None, interval = None))]
    fn anchored(
        &self,
        file: Option<PathBuf>,
        command: Option<&str>,
        timeout: f64,
        tpm_index: Option<u32>,
        tpm: Option<PathBuf>,
        interval: Option<f64>,
    ) -> PyResult<Self> {
        let (key, every) =
            (self.key.clone(), interval.map(|interval| span("interval", interval)).transpose()?);
        let key = match (file, command, tpm_index) {
            (Some(file), None, None) if tpm.is_none() => {
                let anchor = FileAnchor::new(file);
                key.anchored(every.map_or(anchor.clone(), |every| anchor.every(every)))
            }
            (None, Some(command), None) if tpm.is_none() => {
                let anchor = CommandAnchor::new(command, span("timeout", timeout)?);
                key.anchored(every.map_or(anchor.clone(), |every| anchor.every(every)))
            }
            (Some(file), None, Some(index)) => {
                let anchor = TpmAnchor::new(file, index, tpm.as_deref());
                key.anchored(every.map_or(anchor.clone(), |every| anchor.every(every)))
            }
            _ => {
                let why = "an anchor is a file, a command, or a file with the index of a counter of a TPM";
                return Err(PyValueError::new_err(why));
            }
        };
        Ok(SealKey { key, from: self.from })
    }

    /// The same key: slots made with it are refused from `expires` on, a `datetime` with a time
    /// zone or seconds since 1970. Other software, or a wrong clock, gets around it.
    fn until(&self, expires: &Bound<'_, PyAny>) -> PyResult<Self> {
        let seconds = match expires.extract::<f64>() {
            Ok(seconds) => seconds,
            Err(_) if expires.getattr("tzinfo")?.is_none() => {
                return Err(PyValueError::new_err("expires has no time zone"));
            }
            Err(_) => expires.call_method0("timestamp")?.extract::<f64>()?,
        };
        let expires = UNIX_EPOCH.checked_add(span("expires", seconds)?);
        let expires = expires.ok_or_else(|| PyValueError::new_err("expires is too late for a clock"))?;
        Ok(SealKey { key: self.key.clone().until(expires), from: self.from })
    }

    /// The same key, with the key file at `path` that signs the object. An object created with it
    /// is signed: owners of a seal key alone read it, but make no state that readers accept.
    /// Writing takes the sign key; reading takes it or `verified_by`.
    fn signed_by(&self, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        SealKey::made(py, self.key.clone().signed_by(&sign_key(py, &path)?), self.from)
    }

    /// The same key, with the verify key of the object's signature: 64 hexadecimal digits,
    /// `verify_key` of the sign key, from a trusted source. An object not signed by that key is
    /// `Damaged`.
    fn verified_by(&self, py: Python<'_>, digits: &str) -> PyResult<Self> {
        SealKey::made(py, digits.parse().map(|key| self.key.clone().verified_by(key)), self.from)
    }

    /// The same key, for an object that was sealed under `name` and now has any name and ID: a
    /// copy, a snapshot, or one renamed without its key. Otherwise such an object is refused: two
    /// objects of the same keys may have been exchanged.
    fn sealed_as(&self, name: &str) -> Self {
        SealKey { key: self.key.clone().sealed_as(name), from: self.from }
    }

    /// The same key file, for a new object that is erasable: it has this one key slot, and another
    /// only by `Pool.renew_key`. Once its present and former key files are destroyed, no copy,
    /// snapshot or backup of it can be read.
    fn erasable(&self, py: Python<'_>) -> PyResult<Self> {
        SealKey::made(py, self.key.clone().erasable(), self.from)
    }

    fn __repr__(&self) -> String {
        format!("<indelible.SealKey, {}>", self.from)
    }
}

/// The sign key in a file.
pub(crate) fn sign_key(py: Python<'_>, path: &std::path::Path) -> PyResult<indelible::SignKey> {
    py.detach(|| indelible::SignKey::from_file(path)).map_err(|error| os_error(py, path, &error))
}

/// The verify key of the key file at `path`: 64 hexadecimal digits, and no secret.
#[pyfunction]
pub(crate) fn verify_key(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    Ok(sign_key(py, &path)?.verify_key().to_string())
}

/// A slot of an object: number, kind, label, seconds since 1970 of creation and expiry, whether it
/// is damaged.
pub(crate) type Slot = (usize, String, String, u64, Option<u64>, bool);

pub(crate) fn slot(info: SlotInfo) -> Slot {
    (info.slot, info.kind_word(), info.label, info.created, info.expires, info.damaged)
}
