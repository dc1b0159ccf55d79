//! Keys that a TPM keeps: only this machine makes a key of a slot's blob.

use crate::error::KeySourceError;
use crate::sys::tpm::{self, SECRET, Tpm, TpmError, named};
use indelible_store::seal::SecretDevice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

pub(super) fn device(path: Option<&Path>) -> Result<Arc<dyn SecretDevice>, KeySourceError> {
    let path = tpm::path(path);
    match Tpm::open(&path) {
        Ok(_) => Ok(Arc::new(TpmDevice(path))),
        Err(error) => Err(KeySourceError::Tpm { path, error }),
    }
}

/// Opens the TPM for each use: other programs need it.
struct TpmDevice(PathBuf);

impl TpmDevice {
    fn with<R>(&self, f: impl FnOnce(&mut Tpm) -> Result<R, TpmError>) -> Result<R, String> {
        let done = Tpm::open(&self.0).map_err(TpmError::Io).and_then(|mut tpm| f(&mut tpm));
        done.map_err(|error| named(&self.0, &error))
    }
}

impl SecretDevice for TpmDevice {
    fn seal(&self, secret: &[u8; SECRET]) -> Result<Vec<u8>, String> {
        self.with(|tpm| tpm.seal(secret))
    }

    fn unseal(&self, blob: &[u8]) -> Result<Zeroizing<[u8; SECRET]>, String> {
        self.with(|tpm| tpm.unseal(blob))
    }
}
