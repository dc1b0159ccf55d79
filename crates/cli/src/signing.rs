//! Sign and verify keys, from the command line and the environment.

use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::keys::warn_if_open;
use clap::Args;
use indelible::{SealKey, SignKey, VerifyKey};
use std::path::{Path, PathBuf};

/// The signer of a sealed object.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
#[command(next_help_heading = "Seal keys")]
pub struct SignArgs {
    /// Key file that signs the object, to write one that is signed: 32 random bytes or more,
    /// another file than a seal key [env: PMO_SIGN_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    sign_key_file: Option<PathBuf>,

    /// File with the key that verifies a signed object, to read it: what `pmo key verifier` shows
    /// of the sign key [env: PMO_VERIFY_KEY_FILE]
    #[arg(long, value_name = "FILE")]
    verify_key_file: Option<PathBuf>,
}

impl SignArgs {
    fn files(&self) -> (Option<PathBuf>, Option<PathBuf>) {
        let named = |variable| std::env::var_os(variable).filter(|name| !name.is_empty()).map(PathBuf::from);
        match self.is_asked() {
            true => (self.sign_key_file.clone(), self.verify_key_file.clone()),
            false => (named("PMO_SIGN_KEY_FILE"), named("PMO_VERIFY_KEY_FILE")),
        }
    }

    pub fn is_asked(&self) -> bool {
        self.sign_key_file.is_some() || self.verify_key_file.is_some()
    }

    pub fn is_named(&self) -> bool {
        !matches!(self.files(), (None, None))
    }

    /// Adds the sign or verify key, if given.
    ///
    /// # Errors
    /// The environment names both, and they do not match.
    pub fn with(&self, key: SealKey) -> Result<SealKey> {
        let (sign, verify) = self.files();
        let sign = sign.map(|path| sign_key(&path)).transpose()?;
        let verify = verify.map(|path| verify_key(&path)).transpose()?;
        match (sign, verify) {
            (None, None) => Ok(key),
            (None, Some(verify)) => Ok(key.verified_by(verify)),
            (Some(sign), Some(verify)) if sign.verify_key() != verify => {
                let message = "PMO_VERIFY_KEY_FILE does not verify what the key in PMO_SIGN_KEY_FILE signs";
                Err(Failure::new(Exit::Usage, message, "unset one of the two, or give an option"))
            }
            (Some(sign), _) => Ok(key.signed_by(&sign)?),
        }
    }
}

fn verify_key(path: &Path) -> Result<VerifyKey> {
    VerifyKey::from_file(path).map_err(|error| Failure::key_file("verify key", path, error))
}

pub fn sign_key(path: &Path) -> Result<SignKey> {
    warn_if_open(path);
    SignKey::from_file(path).map_err(|error| Failure::key_file("sign key", path, error))
}
