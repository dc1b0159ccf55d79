//! Names of processes.

use crate::text::printable;
use indelible::Stat;
use serde::Serialize;

/// The process that has an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// Process ID.
    pub pid: u32,
    /// Its command, `null` if no such process is visible here.
    pub command: Option<String>,
    /// It is stopped (SIGSTOP), and gives no lock up before it goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// It belongs to another pid namespace (another container), where it has this ID: here that may
    /// be another process.
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

    /// The readers beside that one.
    pub fn others(stat: &Stat) -> Vec<Self> {
        stat.other_readers.iter().copied().map(Holder::here).collect()
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

/// Whether a count is left out of JSON.
pub fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The holders of an object, for people; empty if none is known.
pub fn listed(holder: Option<&Holder>, others: &[Holder], unseen: usize) -> String {
    let mut all: Vec<_> = holder.into_iter().chain(others).map(Holder::to_string).collect();
    match unseen {
        0 => {}
        unseen if all.is_empty() => all.push(format!("{unseen} not to be seen from here")),
        unseen => all.push(format!("{unseen} more not to be seen from here")),
    }
    all.join("; ")
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
