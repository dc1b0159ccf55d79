//! Runs a program, passes signals on to it, and learns of its end.
//!
//! Invariant: the thread that has a [`Supervisor`] blocks the signals of `SET`, so that they stay
//! pending until asked for. Callers are single-threaded.

#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

const PASSED: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
const ENDING: usize = 4;
/// Longer pauses than this have this length: an `Instant` has no later moment.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// Runs programs and passes this process's signals on to them.
#[derive(Debug)]
pub struct Supervisor {
    before: libc::sigset_t,
    set: libc::sigset_t,
    _thread: PhantomData<*const ()>,
}

/// The end of a program.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// ID of its process.
    pub process: u32,
    /// Its status.
    pub status: ExitStatus,
    /// How long it ran.
    pub ran: Duration,
    /// A signal that asked this process, and so the program, to end.
    pub asked: Option<i32>,
}

impl Supervisor {
    /// Blocks signals, so that none ends this process before the program.
    #[must_use]
    pub fn new() -> Supervisor {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the calls fill the given sets, and cannot fail with these arguments.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in PASSED.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            Supervisor { before: before.assume_init(), set: set.assume_init(), _thread: PhantomData }
        }
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// It could not be started.
    pub fn run(&self, command: &mut Command) -> io::Result<Ended> {
        let before = self.before;
        let unblock = move || {
            // SAFETY: a mask from the kernel; async-signal-safe.
            match unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: `unblock` makes one async-signal-safe call and allocates nothing.
        unsafe { command.pre_exec(unblock) };
        let begin = Instant::now();
        let mut child = command.spawn()?;
        let mut asked = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Ended { process: child.id(), status, ran: begin.elapsed(), asked });
            }
            let (signal, by_terminal) = self.next(None);
            if PASSED[..ENDING].contains(&signal) {
                asked = Some(signal);
            }
            // The terminal signals the whole group, the program included.
            if PASSED.contains(&signal) && !by_terminal {
                // SAFETY: not yet waited for, so no other process has its ID.
                unsafe { libc::kill(child.id() as libc::pid_t, signal) };
            }
        }
    }

    /// Waits; returns early with a signal that asks this process to end.
    #[must_use]
    pub fn pause(&self, time: Duration) -> Option<i32> {
        let end = Instant::now() + time.min(LONGEST);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let (signal, _) = self.next(Some(left));
            if PASSED[..ENDING].contains(&signal) {
                return Some(signal);
            }
            if left.is_zero() {
                return None;
            }
        }
    }

    fn next(&self, time: Option<Duration>) -> (i32, bool) {
        const BY_KERNEL: libc::c_int = 0x80;
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let limit = time.map(|time| libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos() as libc::c_long,
        });
        // SAFETY: a set and a time of ours; the kernel fills the information.
        let signal = unsafe {
            match &limit {
                Some(limit) => libc::sigtimedwait(&raw const self.set, info.as_mut_ptr(), limit),
                None => libc::sigwaitinfo(&raw const self.set, info.as_mut_ptr()),
            }
        };
        // SAFETY: zeros, or filled.
        (signal.max(0), unsafe { info.assume_init() }.si_code == BY_KERNEL)
    }
}

impl Default for Supervisor {
    fn default() -> Self {
        Supervisor::new()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // SAFETY: restores the mask that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
