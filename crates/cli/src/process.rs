//! Names of processes.

use crate::text::printable;
use indelible::Stat;
use serde::Serialize;

/// The holder of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    pub pid: u32,
    /// `null` if no such process is visible.
    pub command: Option<String>,
    /// Stopped by SIGSTOP: it keeps its locks.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// In another pid namespace, where this is its ID.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub elsewhere: bool,
}

impl Holder {
    pub fn of(stat: &Stat) -> Option<Self> {
        let elsewhere = || {
            let pid = stat.holder_elsewhere?;
            Some(Holder { pid, command: None, stopped: false, elsewhere: true })
        };
        stat.holder.map(Holder::here).or_else(elsewhere)
    }

    /// The other readers.
    pub fn others(stat: &Stat) -> Vec<Self> {
        stat.other_readers.iter().copied().map(Holder::here).collect()
    }

    fn here(pid: u32) -> Self {
        let read = |what: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{what}")).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim_end().to_owned())
        };
        let state = read("stat").and_then(|stat| stat.rsplit(')').next()?.trim_start().chars().next());
        Holder { pid, command: read("comm"), stopped: matches!(state, Some('T' | 't')), elsewhere: false }
    }
}

pub fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// For people; empty if none is known.
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
