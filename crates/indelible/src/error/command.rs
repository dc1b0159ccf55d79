use std::io;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("the command {command:?} cannot be run: {error}")]
    NotRun { command: String, error: io::Error },
    #[error("the command {command:?} failed with {status}{}", said(stderr))]
    Failed { command: String, status: String, stderr: String },
    #[error(
        "the command {command:?} ended, but this process ignores SIGCHLD, and so learns not whether it failed; set SIGCHLD to its default{}",
        said(stderr)
    )]
    Unknown { command: String, stderr: String },
    #[error("the command {command:?} had no end after {} s, and was killed{}", timeout.as_secs_f64(), said(stderr))]
    TooSlow { command: String, timeout: Duration, stderr: String },
}

fn said(stderr: &str) -> String {
    if stderr.is_empty() { ", and said nothing".to_owned() } else { format!(", and said: {stderr}") }
}
