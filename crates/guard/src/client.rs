//! Queries a guard.

use crate::error::GuardError;
use crate::report::{RoundReport, Status};
use serde::de::DeserializeOwned;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const LONGEST: u64 = 64 << 20;

/// Returns the state of the guard at `socket`.
///
/// # Errors
/// No guard listens, or it does not answer this user in time.
pub fn status(socket: &Path, patience: Duration) -> Result<Status, GuardError> {
    ask(socket, "status\n", patience)
}

/// Makes the guard at `socket` ask all writers to publish, as in a power failure, but without
/// kills.
///
/// # Errors
/// As for [`status`].
pub fn rehearse(socket: &Path, patience: Duration) -> Result<RoundReport, GuardError> {
    ask(socket, "rehearse\n", patience)
}

fn ask<T: DeserializeOwned>(socket: &Path, question: &str, patience: Duration) -> Result<T, GuardError> {
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => GuardError::Absent(socket.to_owned()),
        ErrorKind::WouldBlock => GuardError::Answer { path: socket.to_owned(), why: "not in time".into() },
        _ => GuardError::File { what: "ask the guard at", path: socket.to_owned(), source },
    };
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    stream.set_read_timeout(Some(patience)).map_err(failed)?;
    stream.write_all(question.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    (&mut stream).take(LONGEST).read_to_string(&mut answer).map_err(failed)?;
    match answer.trim_end() {
        "denied" => Err(GuardError::Denied(socket.to_owned())),
        text => serde_json::from_str(text).map_err(|_| {
            let why = match text {
                "" => "it closed the connection".to_owned(),
                text => text.chars().filter(|letter| !letter.is_control()).take(200).collect(),
            };
            GuardError::Answer { path: socket.to_owned(), why }
        }),
    }
}
