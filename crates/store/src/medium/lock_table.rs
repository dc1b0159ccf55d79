use super::Process;
use std::ops::RangeInclusive;

/// Visible locks; empty if the system shows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockTable {
    /// Locked bytes with a process that holds them.
    pub seen: Vec<(u32, RangeInclusive<u64>)>,
    /// Locked bytes of all processes, visible or not.
    pub all: Vec<RangeInclusive<u64>>,
}

impl LockTable {
    /// Visible processes that lock `byte`, ascending, and the least number of invisible ones.
    #[must_use]
    pub fn holders(&self, byte: u64) -> (Vec<u32>, usize) {
        let seen = self.seen.iter().filter(|(_, bytes)| bytes.contains(&byte));
        let mut pids: Vec<u32> = seen.map(|(pid, _)| *pid).collect();
        let locks = pids.len();
        pids.sort_unstable();
        pids.dedup();
        let all = self.all.iter().filter(|bytes| bytes.contains(&byte)).count();
        (pids, all.saturating_sub(locks))
    }
}

/// Further readers of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Visible readers.
    pub processes: Vec<Process>,
    /// Least number of invisible readers.
    pub unseen: usize,
}

/// Readers that an error names.
const NAMED: usize = 8;

impl std::fmt::Display for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for process in self.processes.iter().take(NAMED) {
            let name = process.name().map_or(String::new(), |name| format!(" ({name})"));
            let stopped = if process.stopped { ", which is stopped" } else { "" };
            write!(f, ", process {}{name}{stopped}", process.pid)?;
        }
        if let more @ 1.. = self.processes.len().saturating_sub(NAMED) {
            write!(f, ", {more} more")?;
        }
        match self.unseen {
            0 => Ok(()),
            1 => f.write_str(", and one that cannot be seen from here"),
            unseen => write!(f, ", and {unseen} that cannot be seen from here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_told_apart_from_those_that_cannot_be_seen() {
        let (a, b) = (64, 128);
        let of = |byte: u64| byte..=byte;
        let table = LockTable {
            seen: vec![(9, of(a)), (7, of(a)), (9, of(a)), (5, of(b)), (1, 0..=u64::MAX)],
            all: vec![of(a), of(a), of(a), of(a), of(a), of(a), of(b), 0..=u64::MAX],
        };
        assert_eq!(table.holders(a), (vec![1, 7, 9], 3));
        assert_eq!(table.holders(b), (vec![1, 5], 0));
        assert_eq!(LockTable::default().holders(a), (vec![], 0));
    }

    #[test]
    fn an_error_names_some_and_counts_the_rest() {
        let processes: Vec<_> = (1..11).map(Process::new).collect();
        let text = Others { processes, unseen: 2 }.to_string();
        assert!(text.starts_with(", process 1, process 2,"), "{text}");
        assert!(text.ends_with(", process 8, 2 more, and 2 that cannot be seen from here"), "{text}");
        assert_eq!(Others::default().to_string(), "");
    }
}
