//! Errors of the guard.

use std::io;
use std::path::PathBuf;

/// Why there is no guard, or no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The kernel refused a call on a file or a socket.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// The call, in words.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another guard listens at the socket.
    #[error("another guard has the socket {}", .0.display())]
    Taken(PathBuf),
    /// The socket's path names another kind of file.
    #[error("{} is there, and is no socket", .0.display())]
    NoSocket(PathBuf),
    /// No guard listens.
    #[error("no guard listens at {}", .0.display())]
    Absent(PathBuf),
    /// The guard answers only its own user and root.
    #[error("the guard at {} belongs to another user", .0.display())]
    Denied(PathBuf),
    /// The guard gave no proper answer in time.
    #[error("the guard at {} does not answer: {why}", path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A detector cannot work here.
    #[error("the detector {name} cannot watch: {source}")]
    Detector {
        /// Its name.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

impl GuardError {
    /// Advice: one sentence without a full stop.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            GuardError::File { .. } => "check that the path is right and that this user may use it",
            GuardError::Taken(_) => {
                "`pmo guard status` shows it; give this one another socket, or end that one"
            }
            GuardError::NoSocket(_) => "give another path for the socket, or remove what is there",
            GuardError::Absent(_) => "start it with `pmo guard run`, or name its socket with --socket",
            GuardError::Denied(_) => "ask as that user, or as root",
            GuardError::Answer { .. } => {
                "see whether the guard is stopped, and whether it is of this release"
            }
            GuardError::Detector { .. } => {
                "check that the device or file is there and that this user may read it"
            }
        }
    }
}
