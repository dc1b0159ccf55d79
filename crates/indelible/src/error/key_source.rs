//! Keys of sealed objects that cannot be had.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Variable that names the folder of the credentials of a service.
pub(crate) const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Why a seal key cannot be had. No text of it has a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeySourceError {
    #[error("cannot read {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("the passphrase in {} is not UTF-8", .0.display())]
    NotText(PathBuf),
    #[error("this process has no credentials: {CREDENTIALS} is not set")]
    NoCredentials,
    #[error("{0:?} cannot be the name of a credential")]
    CredentialName(String),
    #[error("the command {command:?} cannot be run: {error}")]
    NotRun { command: String, error: io::Error },
    #[error("the command {command:?} failed with {status}{}", said(stderr))]
    Failed { command: String, status: String, stderr: String },
    #[error("the command {command:?} had no end after {} s, and was killed{}", timeout.as_secs_f64(), said(stderr))]
    TooSlow { command: String, timeout: Duration, stderr: String },
    #[error("the TPM at {} cannot be opened: {error}", path.display())]
    Tpm { path: PathBuf, error: io::Error },
}

/// The standard error of a command, for people.
fn said(stderr: &str) -> String {
    if stderr.is_empty() { ", and said nothing".to_owned() } else { format!(", and said: {stderr}") }
}

impl KeySourceError {
    /// The system's error, if that is the cause.
    pub(crate) fn system(&self) -> Option<&io::Error> {
        match self {
            KeySourceError::File { error, .. }
            | KeySourceError::NotRun { error, .. }
            | KeySourceError::Tpm { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Advice, one sentence without a full stop.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            KeySourceError::File { .. } => "check the path, and that this user may read the file",
            KeySourceError::NotText(_) => "give a file of any bytes as a key file instead",
            KeySourceError::NoCredentials => {
                "set LoadCredential= or LoadCredentialEncrypted= in the unit of the service"
            }
            KeySourceError::Tpm { .. } => {
                "check that the machine has a TPM 2.0, enabled in its firmware, and that this user may use it (group tss)"
            }
            KeySourceError::CredentialName(_) => "give the name that the unit has it under, without a path",
            KeySourceError::NotRun { .. }
            | KeySourceError::Failed { .. }
            | KeySourceError::TooSlow { .. } => {
                "run the command by hand: its standard output has to be the key"
            }
        }
    }
}
