//! Keys that sign sealed objects, and keys that verify, as the command line and the environment name them.

use crate::failure::{Failure, Result};
use clap::Args;
use indelible::{SealKey, SignKey, VerifyKey};
use std::path::{Path, PathBuf};

/// The one who is believed to have made a sealed object.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "Seal keys")]
pub struct SignArgs {
    /// Key file that signs the object, to write one that is signed: 32 random bytes or more, another file than a seal key [env: PMO_SIGN_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    sign_key_file: Option<PathBuf>,

    /// File with the key that verifies a signed object, to read it: what `pmo key verifier` shows of the sign key [env: PMO_VERIFY_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    verify_key_file: Option<PathBuf>,
}

enum Source {
    Sign(PathBuf),
    Verify(PathBuf),
}

impl SignArgs {
    fn source(&self) -> Option<Source> {
        let named = |variable| std::env::var_os(variable).filter(|name| !name.is_empty()).map(PathBuf::from);
        let (sign, verify) = (self.sign_key_file.clone(), self.verify_key_file.clone());
        (sign.map(Source::Sign))
            .or(verify.map(Source::Verify))
            .or_else(|| named("PMO_SIGN_KEY_FILE").map(Source::Sign))
            .or_else(|| named("PMO_VERIFY_KEY_FILE").map(Source::Verify))
    }

    /// The seal key with the key that signs or verifies, if one is given.
    pub fn with(&self, key: SealKey) -> Result<SealKey> {
        match self.source() {
            None => Ok(key),
            Some(Source::Sign(path)) => Ok(key.signed_by(&sign_key(&path)?)?),
            Some(Source::Verify(path)) => {
                let verify = VerifyKey::from_file(&path);
                Ok(key.verified_by(verify.map_err(|error| Failure::key_file("verify key", &path, error))?))
            }
        }
    }
}

/// The sign key in a file.
pub fn sign_key(path: &Path) -> Result<SignKey> {
    SignKey::from_file(path).map_err(|error| Failure::key_file("sign key", path, error))
}
