//! Standard output and standard error, neither of which may ever be read.

use indelible_replicate::{ReplicateError, Result};
use serde::Serialize;
use std::io::{self, Write};

const OUTPUT: &str = "standard output";

/// Writes a line to standard error. The program goes on without a reader of it.
pub(super) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a line to standard output.
pub(super) fn line(text: &str) -> Result<()> {
    let written = writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush());
    written.map_err(|cause| ReplicateError::File { what: "write to", path: OUTPUT.into(), cause })
}

/// Prints a value as one line of JSON.
pub(super) fn print<T: Serialize>(value: &T) -> Result<()> {
    line(&serde_json::to_string(value).unwrap_or_default())
}

/// Whether the reader of standard output has gone, which is no failure.
pub(super) fn is_closed(error: &ReplicateError) -> bool {
    let ReplicateError::File { path, cause, .. } = error else { return false };
    path.as_os_str() == OUTPUT && cause.kind() == io::ErrorKind::BrokenPipe
}
