//! Failures of commands: the cause, and advice.

use crate::exit::Exit;
use crate::text::{printable, quoted};
use indelible::Error;
use std::io::{self, Write};
use std::path::Path;

/// Result of a command.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// A command that failed.
#[derive(Debug)]
pub enum Failure {
    /// The failure was reported already.
    Quiet(Exit),
    /// One line, and one of help.
    Said { exit: Exit, message: String, help: Option<String> },
}

impl Failure {
    /// A failure with help.
    pub fn new(exit: Exit, message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Said { exit, message: message.into(), help: Some(help.into()) }
    }

    /// A file that is not the pool.
    pub fn file(action: &str, path: &Path, error: &io::Error) -> Self {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NotFound,
            io::ErrorKind::PermissionDenied => Exit::Denied,
            io::ErrorKind::StorageFull => Exit::Full,
            _ => Exit::Failed,
        };
        let message = format!("cannot {action} {}: {error}", path.display());
        Failure::Said { exit, message, help: None }
    }

    /// Exit status for this failure.
    pub fn exit(&self) -> Exit {
        match *self {
            Failure::Quiet(exit) | Failure::Said { exit, .. } => exit,
        }
    }

    /// Writes it to standard error. A failure of that write is ignored.
    pub fn report(&self) {
        let Failure::Said { message, help, .. } = self else {
            return;
        };
        let mut err = io::stderr().lock();
        let _ = writeln!(err, "error: {}", printable(message));
        if let Some(help) = help {
            let _ = writeln!(err, "help: {}", printable(help));
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (text, remedy) = (error.to_string(), error.remedy());
        let message = text.strip_suffix(&format!(" ({remedy})")).unwrap_or(&text).to_owned();
        Failure::new(error.kind().into(), message, remedy)
    }
}

/// Standard output failed. A reader that has seen enough is no failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Quiet(Exit::Fine),
            _ => Failure::Said {
                exit: Exit::Failed,
                message: format!("cannot write to standard output: {error}"),
                help: None,
            },
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

/// Writes a note that is no failure to standard error.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr(), "note: {}", printable(text));
}

/// "object "name"", for messages.
pub fn object(name: &str) -> String {
    format!("object {}", quoted(name))
}
