//! All open-file-description locks on a file. The kernel lists locks without holders in
//! `/proc/locks`, and each process's own in `/proc/PID/fdinfo`.
//!
//! Cost: one text per open file of all visible processes; none if the file has no locks.

use indelible_store::medium::LockTable;
use std::fs;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::process;

struct Line<'a> {
    file: &'a str,
    bytes: RangeInclusive<u64>,
}

pub(crate) fn locks(fd: BorrowedFd<'_>) -> LockTable {
    let Ok(stat) = rustix::fs::fstat(fd) else { return LockTable::default() };
    let (device, inode) = (stat.st_dev, stat.st_ino);
    let ends = format!(":{inode}");
    let all = fs::read_to_string("/proc/locks").ok();
    if all.as_ref().is_some_and(|all| !all.lines().filter_map(parse).any(|line| line.file.ends_with(&ends))) {
        return LockTable::default();
    }
    let mut table = LockTable::default();
    // The kernel's spelling: on some file systems not the device that fstat reports.
    let mut name = None;
    for (pid, folder) in process::all() {
        for (number, text) in texts(&folder.join("fdinfo")) {
            let mut lines =
                text.lines().filter_map(parse).filter(|line| line.file.ends_with(&ends)).peekable();
            let Some(first) = lines.peek() else { continue };
            // Inode numbers repeat on other file systems.
            let open = fs::metadata(folder.join("fd").join(&number));
            if !open.is_ok_and(|open| (open.dev(), open.ino()) == (device, inode)) {
                continue;
            }
            name.get_or_insert_with(|| first.file.to_owned());
            table.seen.extend(lines.map(|line| (pid, line.bytes)));
        }
    }
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let name = name.unwrap_or_else(|| format!("{major:02x}:{minor:02x}{ends}"));
    let all = all.unwrap_or_default();
    table.all =
        all.lines().filter_map(parse).filter(|line| line.file == name).map(|line| line.bytes).collect();
    table
}

fn texts(folder: &Path) -> impl Iterator<Item = (String, String)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| {
        Some((file.file_name().into_string().ok()?, fs::read_to_string(file.path()).ok()?))
    })
}

/// Reads `1: OFDLCK ADVISORY READ -1 00:1b:77 100 200`, after `lock:` in `fdinfo`. A line with `->`
/// waits for the lock.
fn parse(line: &str) -> Option<Line<'_>> {
    let mut words = line.split_whitespace().skip_while(|word| *word == "lock:").skip(1);
    if words.next()? != "OFDLCK" {
        return None;
    }
    let (file, start, end) = (words.nth(3)?, words.next()?, words.next()?);
    let end = if end == "EOF" { u64::MAX } else { end.parse().ok()? };
    Some(Line { file, bytes: start.parse().ok()?..=end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::ofd::{try_lock, unlock};
    use indelible_store::medium::{LockKey, LockMode};
    use std::os::fd::AsFd;

    #[test]
    fn each_holder_of_a_lock_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let again = || fs::File::options().read(true).write(true).open(file.path()).unwrap();
        let (one, two) = (again(), again());
        let key = LockKey::Object(640);
        assert_eq!(locks(one.as_fd()), LockTable::default());
        assert!(try_lock(one.as_fd(), key.byte(), LockMode::Shared).unwrap());
        assert!(try_lock(two.as_fd(), key.byte(), LockMode::Shared).unwrap());
        let found = locks(file.as_file().as_fd());
        let me = std::process::id();
        assert_eq!(found.seen, [(me, key.byte()..=key.byte()), (me, key.byte()..=key.byte())]);
        assert_eq!((found.all.len(), found.holders(key.byte())), (2, (vec![me], 0)));
        assert_eq!(locks(tempfile::tempfile().unwrap().as_fd()), LockTable::default());
        unlock(one.as_fd(), key.byte());
        unlock(two.as_fd(), key.byte());
        assert_eq!(locks(one.as_fd()), LockTable::default());
    }

    #[test]
    fn lines_of_both_kinds_are_read() {
        let read = |text| parse(text).map(|line| (line.file.to_owned(), line.bytes));
        let found = Some(("00:1b:77".to_owned(), 100..=200));
        assert_eq!(read("lock:\t1: OFDLCK  ADVISORY  READ -1 00:1b:77 100 200"), found);
        assert_eq!(read("12: OFDLCK  ADVISORY  READ  -1 00:1b:77 100 200"), found);
        assert_eq!(read("1: OFDLCK ADVISORY WRITE -1 fe:01:7 0 EOF"), Some(("fe:01:7".into(), 0..=u64::MAX)));
        for other in [
            "1: POSIX ADVISORY READ 7 00:1b:77 0 EOF",
            "1: -> OFDLCK ADVISORY READ -1 00:1b:77 1 2",
            "flags:\t02",
            "",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
