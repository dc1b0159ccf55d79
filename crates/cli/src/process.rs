//! Names of processes.

use crate::text::printable;
use indelible::Stat;
use serde::Serialize;

/// The process that has an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Process ID.
    pub pid: u32,
    /// Its command, `null` if no such process is to be seen from here.
    pub command: Option<String>,
    /// It is stopped (SIGSTOP), and gives no lock up before it goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// It belongs to another pid namespace (another container), where it has this ID: here that may be another process.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

impl Holder {
    /// The holder of the object, if it is known.
    pub fn of(stat: &Stat) -> Option<Self> {
        let elsewhere = || {
            let pid = stat.holder_elsewhere?;
            Some(Holder { pid, command: None, stopped: false, elsewhere: true })
        };
        stat.holder.map(Holder::here).or_else(elsewhere)
    }

    /// The process `pid`.
    fn here(pid: u32) -> Self {
        let read = |what: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{what}")).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
        };
        let state = read("stat").and_then(|stat| stat.rsplit(')').next()?.trim_start().chars().next());
        Holder { pid, command: read("comm"), stopped: matches!(state, Some('T' | 't')), elsewhere: false }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.pid)?;
        if let Some(command) = &self.command {
            write!(f, " {}", printable(command))?;
        }
        f.write_str(match (self.elsewhere, self.stopped) {
            (true, _) => " in another pid namespace",
            (_, true) => ", stopped",
            _ => "",
        })
    }
}
