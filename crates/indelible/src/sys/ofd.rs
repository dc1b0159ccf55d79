//! Open-file-description locks, which the kernel releases with their holder.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, BorrowedFd};

use indelible_store::medium::{LockMode, MediumError, Process};

use super::process;

fn request(kind: libc::c_int, start: u64, len: u64) -> io::Result<libc::flock> {
    let range =
        |value: u64| libc::off_t::try_from(value).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW));
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: range(start)?,
        l_len: range(len)?,
        // The kernel refuses such locks otherwise.
        l_pid: 0,
    })
}

fn length(bytes: &RangeInclusive<u64>) -> u64 {
    bytes.end().saturating_sub(*bytes.start()).saturating_add(1)
}

fn fcntl(fd: BorrowedFd<'_>, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    loop {
        // SAFETY: `lock` is a valid `struct flock`; the descriptor is borrowed for the call.
        if unsafe { libc::fcntl(fd.as_raw_fd(), command, std::ptr::from_mut(lock)) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn explain(error: io::Error) -> MediumError {
    match error.raw_os_error() {
        Some(libc::ENOLCK | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS) => MediumError::NoLocks,
        Some(libc::EBADF) => MediumError::ReadOnly,
        _ => MediumError::Io(error),
    }
}

fn kind(mode: LockMode) -> libc::c_int {
    match mode {
        LockMode::Shared => libc::F_RDLCK,
        LockMode::Exclusive => libc::F_WRLCK,
    }
}

/// Without waiting. `Ok(false)`: another holder conflicts; a held lock keeps its mode.
pub(crate) fn try_lock(fd: BorrowedFd<'_>, byte: u64, mode: LockMode) -> Result<bool, MediumError> {
    try_lock_range(fd, byte..=byte, mode)
}

pub(crate) fn try_lock_range(
    fd: BorrowedFd<'_>,
    bytes: RangeInclusive<u64>,
    mode: LockMode,
) -> Result<bool, MediumError> {
    let mut lock = request(kind(mode), *bytes.start(), length(&bytes))?;
    match fcntl(fd, libc::F_OFD_SETLK, &mut lock) {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(e) => Err(explain(e)),
    }
}

pub(crate) fn unlock(fd: BorrowedFd<'_>, byte: u64) {
    unlock_range(fd, byte..=byte);
}

pub(crate) fn unlock_range(fd: BorrowedFd<'_>, bytes: RangeInclusive<u64>) {
    if let Ok(mut lock) = request(libc::F_UNLCK, *bytes.start(), length(&bytes)) {
        // Fails only on a descriptor that is no longer ours, which holds no lock.
        let _ = fcntl(fd, libc::F_OFD_SETLK, &mut lock);
    }
}

pub(crate) fn unlock_all(fd: BorrowedFd<'_>) {
    if let Ok(mut lock) = request(libc::F_UNLCK, 0, 0) {
        let _ = fcntl(fd, libc::F_OFD_SETLK, &mut lock);
    }
}

pub(crate) fn probe(fd: BorrowedFd<'_>, byte: u64) -> Result<Option<LockMode>, MediumError> {
    probe_range(fd, byte..=byte)
}

/// Another open file description's lock in this range; the strongest, for one byte.
pub(crate) fn probe_range(
    fd: BorrowedFd<'_>,
    bytes: RangeInclusive<u64>,
) -> Result<Option<LockMode>, MediumError> {
    // An exclusive request finds any holder; an exclusive one is alone.
    let mut lock = request(libc::F_WRLCK, *bytes.start(), length(&bytes))?;
    fcntl(fd, libc::F_OFD_GETLK, &mut lock).map_err(explain)?;
    Ok(match libc::c_int::from(lock.l_type) {
        libc::F_UNLCK => None,
        libc::F_RDLCK => Some(LockMode::Shared),
        _ => Some(LockMode::Exclusive),
    })
}

thread_local! {
    static UNNAMED: Cell<bool> = const { Cell::new(false) };
}

/// For work whose errors are retried unseen: holders' names would cost more than the work.
pub(crate) fn unnamed<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            UNNAMED.set(self.0);
        }
    }
    let _before = Before(UNNAMED.replace(true));
    work()
}

/// Reads every `/proc/PID/fdinfo`. `None`: no visible process, or within [`unnamed`].
pub(crate) fn holder(fd: BorrowedFd<'_>, byte: u64) -> Option<Process> {
    if UNNAMED.get() {
        return None;
    }
    let inode = rustix::fs::fstat(fd).ok()?.st_ino.to_string();
    let has = |folder: std::path::PathBuf| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.into_iter().any(|text| text.lines().any(|line| covers(line, &inode, byte)))
    };
    let (pid, _) = process::all().find(|(_, folder)| has(folder.join("fdinfo")))?;
    Some(process::seen(pid))
}

/// `lock: 1: OFDLCK ADVISORY READ -1 00:1b:77 100 200`.
fn covers(line: &str, inode: &str, byte: u64) -> bool {
    let ["lock:", _, "OFDLCK", _, _, _, file, start, end] = line.split_whitespace().collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let starts = start.parse::<u64>().is_ok_and(|start| start <= byte);
    let ends = end == "EOF" || end.parse::<u64>().is_ok_and(|end| byte <= end);
    file.rsplit(':').next() == Some(inode) && starts && ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use indelible_store::medium::LockKey;
    use std::os::fd::AsFd;

    #[test]
    fn locks_of_neighbouring_objects_are_one_record_of_the_kernel_and_end_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let other = file.reopen().unwrap();
        let keys: Vec<LockKey> = (0..1000).map(|nth| LockKey::Object(4096 + nth * 1024)).collect();
        for key in &keys {
            assert!(try_lock_range(file.as_fd(), key.bytes(), LockMode::Exclusive).unwrap());
        }
        let records = |fd: &std::fs::File| {
            let info = format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(fd));
            std::fs::read_to_string(info).unwrap().matches("OFDLCK").count()
        };
        assert_eq!(records(file.as_file()), 1);
        unlock_range(file.as_fd(), keys[500].bytes());
        assert_eq!(records(file.as_file()), 2);
        for (nth, key) in keys.iter().enumerate() {
            let free = try_lock(other.as_fd(), key.byte(), LockMode::Exclusive).unwrap();
            assert_eq!(free, nth == 500, "object {nth}");
            assert_eq!(probe(file.as_fd(), key.byte()).unwrap().is_some(), nth == 500, "object {nth}");
        }
    }

    #[test]
    fn the_holder_of_a_byte_is_found() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(holder(file.as_fd(), 500), None);
        assert!(try_lock(file.as_fd(), 500, LockMode::Shared).unwrap());
        assert_eq!(holder(file.as_fd(), 500).map(|process| process.pid), Some(std::process::id()));
        assert_eq!((holder(file.as_fd(), 499), holder(file.as_fd(), 501)), (None, None));
        unlock(file.as_fd(), 500);
        assert_eq!(holder(file.as_fd(), 500), None);
    }
}
