//! Processes, as far as a name for one goes.

use crate::text::printable;
use serde::Serialize;

/// Who has an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Process ID.
    pub pid: u32,
    /// Its command, `null` if no such process is to be seen from here.
    pub command: Option<String>,
}

impl Holder {
    /// The process `pid`.
    pub fn of(pid: u32) -> Self {
        let comm = std::fs::read(format!("/proc/{pid}/comm")).ok();
        let command = comm.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        Holder { pid, command }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.command {
            Some(command) => write!(f, "{} {}", self.pid, printable(command)),
            None => write!(f, "{}", self.pid),
        }
    }
}
