//! The connecting process, as a descriptor: its number may be another process's by now.
//!
//! A child may keep a gone process's connection. Linux 6.5 gives the process itself
//! (`SO_PEERPIDFD`). Before, the number is looked up at the accept and may be another process's. So
//! a kill ends only what the connection's user may end.

use crate::kernel::{self, Peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Readable once the process is dead.
#[derive(Debug)]
pub(crate) struct Process {
    fd: OwnedFd,
    peer: Peer,
}

impl Process {
    /// The connecting process; `None`: it is gone.
    pub(crate) fn of(socket: impl AsFd, peer: Peer) -> io::Result<Option<Process>> {
        let Some(pid) = Pid::from_raw(peer.pid) else {
            return Err(io::Error::other("its process is not to be seen from here"));
        };
        let fd = match kernel::peer_process(socket) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NOPROTOOPT) => {
                pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from)
            }
            found => found,
        };
        match fd {
            Ok(fd) => Ok(Some(Process { fd, peer })),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::SRCH | Errno::INVAL | Errno::NODATA) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// If the connection's user may; never the guard's own, which may be registered with itself.
    pub(crate) fn kill(&self) {
        if self.peer.pid.unsigned_abs() != std::process::id() && self.user_may_end() {
            let _ = pidfd_send_signal(&self.fd, Signal::KILL);
        }
    }

    /// A set-user-ID program may have changed its user.
    fn user_may_end(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.peer.pid));
        // Still alive, it had this number when the file was read.
        self.peer.uid == 0
            || status.is_ok_and(|status| self.lives() && may_signal(&status, self.peer.uid) == Some(true))
    }

    fn lives(&self) -> bool {
        let mut polled = [PollFd::new(&self.fd, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())) == Ok(0)
    }
}

/// `None`: `status` lacks the user IDs.
fn may_signal(status: &str, user: u32) -> Option<bool> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let ids = line.split_whitespace().map(|id| id.parse().ok()).collect::<Option<Vec<u32>>>()?;
    match ids[..] {
        [real, _, saved, _] => Some(real == user || saved == user),
        _ => None,
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    fn child_of(user: u32) -> (std::process::Child, Process) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let fd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let peer = Peer { pid: child.id() as i32, uid: user, gid: user };
        (child, Process { fd, peer })
    }

    #[test]
    fn a_process_that_its_user_may_not_end_is_not_killed() {
        let own = rustix::process::getuid().as_raw();
        let (mut child, process) = child_of(own + 1);
        process.kill();
        assert!(process.lives());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success(), "it was not killed");
        assert!(!process.lives());
        let (mut child, process) = child_of(own);
        process.kill();
        assert_eq!(child.stdout.take().unwrap().read(&mut [0]).unwrap(), 0);
        assert!(!child.wait().unwrap().success(), "it was killed");
    }

    #[test]
    fn rights_are_those_of_the_real_and_the_saved_user() {
        let status = |ids: &str| format!("Name:\tcat\nUid:\t{ids}\nGid:\t0\t0\t0\t0\n");
        assert_eq!(may_signal(&status("7\t0\t0\t0"), 7), Some(true));
        assert_eq!(may_signal(&status("0\t0\t7\t0"), 7), Some(true));
        assert_eq!(may_signal(&status("0\t7\t0\t7"), 7), Some(false));
        assert_eq!(may_signal(&status("7"), 7), None);
        assert_eq!(may_signal("Name:\tUid:\t7\t7\t7\t7\n", 7), None);
    }

    #[test]
    fn the_process_at_the_other_end_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let _other = std::os::unix::net::UnixStream::connect(dir.path().join("s")).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let peer = kernel::peer(&stream).unwrap();
        let process = Process::of(&stream, peer).unwrap().unwrap();
        assert!(peer.pid.unsigned_abs() == std::process::id() && process.lives());
        process.kill();
    }
}
