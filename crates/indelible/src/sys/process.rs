use indelible_store::medium::Process;
use std::fs;
use std::path::PathBuf;

/// Number of the first pid namespace of every Linux (`PROC_PID_INIT_INO`).
const FIRST: u64 = 0xefff_fffc;

const FLAGS: usize = 6;
const PENDING: usize = 28;
/// `PF_EXITING`.
const EXITING: u64 = 4;
const KILL: u64 = 1 << (libc::SIGKILL - 1);

pub(crate) fn seen(pid: u32) -> Process {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    parse(pid, &stat)
}

fn parse(pid: u32, stat: &str) -> Process {
    let mut process = Process::new(pid);
    if let (Some(from), Some(to)) = (stat.find('('), stat.rfind(')'))
        && let Some(name) = stat.as_bytes().get(from + 1..to)
    {
        let len = name.len().min(process.name.len());
        process.name[..len].copy_from_slice(&name[..len]);
        let mut fields = stat[to + 1..].split_ascii_whitespace();
        let state = fields.next().unwrap_or_default();
        let flags = fields.nth(FLAGS - 1).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let pending =
            fields.nth(PENDING - FLAGS - 1).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        process.stopped = matches!(state, "T" | "t");
        process.ending = matches!(state, "Z" | "X") || flags & EXITING != 0 || pending & KILL != 0;
    }
    process
}

/// Async-signal-safe.
pub(crate) fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

pub(crate) fn all() -> impl Iterator<Item = (u32, PathBuf)> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| Some((folder.file_name().to_str()?.parse().ok()?, folder.path())))
}

/// This process's pid namespace: 0 for the machine's first, `u64::MAX` if unknown.
pub(crate) fn namespace() -> u64 {
    match fs::read_link("/proc/self/ns/pid").ok().as_deref().and_then(|link| number(link.to_str()?)) {
        Some(FIRST) => 0,
        Some(number) => number,
        None => u64::MAX,
    }
}

fn number(link: &str) -> Option<u64> {
    link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_described_by_name_and_state() {
        let me = seen(std::process::id());
        assert!(me.name().is_some() && !me.stopped);
        let odd = parse(7, "7 (a) b) (c) T 1 7 7 0");
        assert_eq!((odd.name().as_deref(), odd.stopped), (Some("a) b) (c"), true));
        assert!(parse(7, "7 (x) t 1").stopped && !parse(7, "7 (T) S 1").stopped);
        let stat = |state: &str, flags: u64, pending: u64| {
            parse(7, &format!("7 (x) {state} 1 7 7 0 -1 {flags} {} {pending} 0 0", ["0"; 21].join(" ")))
        };
        assert!(!me.ending && !stat("S", 0x40_0100, 1 << 14).ending);
        assert!(stat("Z", 0, 0).ending && stat("R", 0x40_0104, 0).ending && stat("D", 0, 1 << 8).ending);
        for nothing in ["", "7", "7 (", ")(", "7 (endless"] {
            assert_eq!(parse(7, nothing), Process::new(7), "{nothing:?}");
        }
        assert!(all().any(|(pid, _)| pid == std::process::id()));
    }

    #[test]
    fn pid_namespaces_have_numbers() {
        assert_eq!(number("pid:[4026531836]"), Some(FIRST));
        assert_eq!((number("pid:[x]"), number("net:[1]"), number("")), (None, None, None));
        assert_eq!(namespace(), namespace());
    }
}
