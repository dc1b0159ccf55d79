//! Shell commands with a time limit and a small, possibly secret output.

use crate::error::CommandError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

pub(super) const LIMIT: usize = (1 << 20) + 1;
const STDERR: usize = 2000;
/// Longer limits than this have this length: an `Instant` has no later moment.
const LONGEST: Duration = Duration::from_secs(1 << 30);

struct Running {
    child: Child,
    output: Zeroizing<Vec<u8>>,
    stderr: Vec<u8>,
    deadline: Instant,
}

pub(super) fn output(command: &str, input: &str, timeout: Duration) -> Result<Vec<u8>, CommandError> {
    let not_run = |error| CommandError::NotRun { command: command.to_owned(), error };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(stdin(input).map_err(not_run)?);
    let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(not_run)?;
    drop(shell);
    // Full capacity: a growing buffer leaves copies behind.
    let output = Zeroizing::new(Vec::with_capacity(LIMIT));
    let deadline = Instant::now() + timeout.min(LONGEST);
    let mut running = Running { child, output, stderr: Vec::new(), deadline };
    let ended = running.collect().and_then(|done| Ok(done && running.ends()?));
    if !matches!(ended, Ok(true)) {
        let _ = running.child.kill();
    }
    let status = match running.child.wait() {
        Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => None,
        status => Some(status.map_err(not_run)?),
    };
    let stderr = String::from_utf8_lossy(&running.stderr).trim().to_owned();
    let command = command.to_owned();
    match ended {
        Err(error) => Err(CommandError::NotRun { command, error }),
        Ok(false) => Err(CommandError::TooSlow { command, timeout, stderr }),
        // Killed by a full pipe: its length is at fault.
        Ok(true) if running.output.len() == LIMIT => Ok(std::mem::take(&mut running.output)),
        Ok(true) => match status {
            Some(status) if status.success() => Ok(std::mem::take(&mut running.output)),
            Some(status) => Err(CommandError::Failed { command, status: status.to_string(), stderr }),
            None => Err(CommandError::Unknown { command, stderr }),
        },
    }
}

fn stdin(input: &str) -> io::Result<Stdio> {
    if input.is_empty() {
        return Ok(Stdio::null());
    }
    // A pipe takes it at once; while the reader is open, a command that does not read raises no
    // signal.
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(input.as_bytes())?;
    Ok(reader.into())
}

impl Running {
    fn collect(&mut self) -> io::Result<bool> {
        let (mut out, mut err) = (self.child.stdout.take(), self.child.stderr.take());
        let mut buffer = Zeroizing::new([0; 4096]);
        while out.is_some() || err.is_some() {
            let fds: Vec<_> = out.iter().map(AsFd::as_fd).chain(err.iter().map(AsFd::as_fd)).collect();
            let Some(ready) = self.wait(&fds)? else { return Ok(false) };
            let (begin, end) = (ready.first() == Some(&true), ready.last() == Some(&true));
            if let Some(pipe) = out.as_ref().filter(|_| begin) {
                let got = read(pipe, &mut *buffer)?;
                let room = LIMIT - self.output.len();
                self.output.extend_from_slice(&buffer[..got.min(room)]);
                if got == 0 || self.output.len() == LIMIT {
                    out = None;
                }
            }
            if let Some(pipe) = err.as_ref().filter(|_| end) {
                let got = read(pipe, &mut *buffer)?;
                let room = STDERR - self.stderr.len();
                self.stderr.extend_from_slice(&buffer[..got.min(room)]);
                if got == 0 {
                    err = None;
                }
            }
        }
        Ok(true)
    }

    fn ends(&self) -> io::Result<bool> {
        let process = match pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()) {
            // It ended, in a process that ignores SIGCHLD.
            Err(Errno::SRCH) => return Ok(true),
            process => process?,
        };
        Ok(self.wait(&[process.as_fd()])?.is_some())
    }

    fn wait(&self, fds: &[BorrowedFd<'_>]) -> io::Result<Option<Vec<bool>>> {
        let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let left =
                Timespec { tv_sec: left.as_secs().min(1 << 30) as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut polled, Some(&left)) {
                Err(Errno::INTR) => {}
                Ok(0) => return Ok(None),
                done => {
                    done?;
                    return Ok(Some(polled.iter().map(|fd| !fd.revents().is_empty()).collect()));
                }
            }
        }
    }
}
