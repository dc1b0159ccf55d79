use super::CommandError;
use std::io;
use std::path::PathBuf;

pub(crate) const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Never contains a key.
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
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("the TPM at {} cannot be opened: {error}", path.display())]
    Tpm { path: PathBuf, error: io::Error },
}

impl KeySourceError {
    pub(crate) fn system(&self) -> Option<&io::Error> {
        match self {
            KeySourceError::File { error, .. }
            | KeySourceError::Command(CommandError::NotRun { error, .. })
            | KeySourceError::Tpm { error, .. } => Some(error),
            _ => None,
        }
    }

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
            KeySourceError::Command(_) => "run the command by hand: its standard output has to be the key",
        }
    }
}
