use super::{Anchor, Counter, FileAnchor};
use crate::sys::tpm::{self, Tpm, TpmError, named};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A TPM's memory bears some hundred thousand writes: eleven years of them.
const HOUR: Duration = Duration::from_secs(3600);

/// An anchor in a file, which may lie beside the pool, with a monotonic counter in a TPM 2.0: an
/// 8-byte index in the owner's hierarchy, without a password, which the first attach defines. It
/// rises at each attach for writing, checkpoint and detach, and at a psync once an hour.
#[derive(Clone, Debug)]
pub struct TpmAnchor {
    record: FileAnchor,
    counter: TpmCounter,
}

impl TpmAnchor {
    /// The record is in the file at `path`, the counter at `index`, from `0x0100_0000` to
    /// `0x01ff_ffff`; `tpm2_getcap handles-nv-index` lists those in use. `device`: a TPM device or
    /// socket, by default `/dev/tpmrm0`.
    #[must_use]
    pub fn new(path: impl AsRef<Path>, index: u32, device: Option<&Path>) -> TpmAnchor {
        let counter = TpmCounter { device: tpm::path(device), index };
        TpmAnchor { record: FileAnchor::new(path).every(HOUR), counter }
    }

    /// Sets the [interval](Anchor::interval). Zero wears the TPM's memory out within hours.
    #[must_use]
    pub fn every(self, interval: Duration) -> TpmAnchor {
        TpmAnchor { record: self.record.every(interval), ..self }
    }
}

impl Anchor for TpmAnchor {
    fn read(&self) -> io::Result<Option<String>> {
        self.record.read()
    }

    fn write(&self, record: &str) -> io::Result<()> {
        self.record.write(record)
    }

    fn interval(&self) -> Duration {
        self.record.interval()
    }

    fn counter(&self) -> Option<&dyn Counter> {
        Some(&self.counter)
    }
}

#[derive(Clone, Debug)]
struct TpmCounter {
    device: PathBuf,
    index: u32,
}

impl TpmCounter {
    fn with<R>(&self, f: impl FnOnce(&mut Tpm, u32) -> Result<R, TpmError>) -> io::Result<R> {
        let done = Tpm::open(&self.device).map_err(TpmError::Io).and_then(|mut tpm| f(&mut tpm, self.index));
        done.map_err(|error| io::Error::other(named(&self.device, &error)))
    }
}

impl Counter for TpmCounter {
    fn define(&self) -> io::Result<()> {
        self.with(Tpm::define_counter)
    }

    fn value(&self) -> io::Result<u64> {
        self.with(Tpm::counter)
    }

    fn increment(&self) -> io::Result<()> {
        self.with(Tpm::increment)
    }
}
