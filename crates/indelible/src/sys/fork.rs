//! Cleanup in a forked child: it must lose the descriptors that keep locks alive, and the parent's
//! attachments.
//!
//! Invariants:
//! 1. `GENERATION` grows by one in every forked child before any other code of the child runs.
//! 2. A slot of `FDS` is −1, or names a descriptor that a live [`ForkFd`] owns. Chunks of slots are
//!    leaked and never move.
//! 3. The child handler allocates nothing, takes no lock that the parent's threads may hold, and
//!    calls only async-signal-safe functions.
//! 4. No descriptor here is 0, 1 or 2: a program that closed its standard output would print into a
//!    pool.
//! 5. The child replaces a parent's descriptor by an `O_PATH` one, on which every operation fails,
//!    so that a late drop cannot close another file.
//!
//! Children of `vfork`, `posix_spawn` or a bare `clone` run no handlers; their `exec` closes
//! everything here (`O_CLOEXEC`).

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

#[derive(Debug)]
struct Chunk {
    slots: [AtomicI32; 1024],
    next: AtomicPtr<Chunk>,
}

impl Chunk {
    const fn new() -> Chunk {
        Chunk { slots: [const { AtomicI32::new(-1) }; 1024], next: AtomicPtr::new(ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Chunk> {
        // SAFETY: null, or a chunk that was leaked (2).
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn onwards(&'static self) -> impl Iterator<Item = &'static Chunk> {
        std::iter::successors(Some(self), |chunk| chunk.next())
    }

    fn next_or_new(&self) -> &'static Chunk {
        if let Some(next) = self.next() {
            return next;
        }
        let fresh = Box::into_raw(Box::new(Chunk::new()));
        match self.next.compare_exchange(ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `fresh` is leaked from here on (2).
            Ok(_) => unsafe { &*fresh },
            Err(winner) => {
                // SAFETY: `fresh` came from `Box::into_raw` and was not published.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: another thread published a chunk, leaked (2).
                unsafe { &*winner }
            }
        }
    }

    fn register(&'static self, fd: i32) -> Option<&'static AtomicI32> {
        let free = |slot: &&AtomicI32| {
            slot.load(Ordering::Relaxed) == -1
                && slot.compare_exchange(-1, fd, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        self.slots.iter().find(free)
    }
}

static GENERATION: AtomicU32 = AtomicU32::new(0);
static FORKS: AtomicU32 = AtomicU32::new(0);
static FDS: Chunk = Chunk::new();
/// The chunk that last had a free slot, a hint; null: the first.
static ROOM: AtomicPtr<Chunk> = AtomicPtr::new(ptr::null_mut());
static TOMB: AtomicI32 = AtomicI32::new(-1);
/// 1 while a thread forks, or has a mapping not yet excluded from forks.
static MAPPING: AtomicU32 = AtomicU32::new(0);

#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

#[inline]
pub(crate) fn count() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

#[inline]
pub(crate) fn is_stale(of: u32) -> bool {
    of != generation()
}

#[derive(Debug)]
pub(crate) struct ForkFd {
    /// Invariant: registered in `slot` until drop.
    fd: OwnedFd,
    slot: &'static AtomicI32,
    chunk: &'static Chunk,
    generation: u32,
}

impl ForkFd {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<ForkFd> {
        install()?;
        let fd = beyond_standard(fd)?;
        // SAFETY: null, or a chunk of the list, leaked (2).
        let hint = unsafe { ROOM.load(Ordering::Acquire).as_ref() }.unwrap_or(&FDS);
        let known = hint.onwards().chain(FDS.onwards());
        let made = std::iter::successors(FDS.onwards().last(), |chunk| Some(chunk.next_or_new()));
        for chunk in known.chain(made) {
            if let Some(slot) = chunk.register(fd.as_raw_fd()) {
                ROOM.store(ptr::from_ref(chunk).cast_mut(), Ordering::Release);
                return Ok(ForkFd { fd, slot, chunk, generation: generation() });
            }
        }
        Err(io::ErrorKind::OutOfMemory.into())
    }

    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        is_stale(self.generation)
    }
}

/// The same open file under a number that no standard stream has (4).
fn beyond_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    const FIRST: i32 = 3;
    match fd.as_raw_fd() {
        FIRST.. => Ok(fd),
        _ => Ok(rustix::io::fcntl_dupfd_cloexec(&fd, FIRST)?),
    }
}

impl AsFd for ForkFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for ForkFd {
    fn drop(&mut self) {
        // Before the close: a fork in between would replace another descriptor with this number.
        self.slot.store(-1, Ordering::SeqCst);
        ROOM.store(ptr::from_ref(self.chunk).cast_mut(), Ordering::Release);
    }
}

/// Keeps forks out while a mapping exists that is not yet excluded from them.
#[derive(Debug)]
pub(crate) struct NoFork(());

impl NoFork {
    pub(crate) fn enter() -> io::Result<NoFork> {
        install()?;
        acquire();
        Ok(NoFork(()))
    }
}

impl Drop for NoFork {
    fn drop(&mut self) {
        MAPPING.store(0, Ordering::Release);
    }
}

fn acquire() {
    while MAPPING.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // Held for a few system calls only.
        std::thread::yield_now();
    }
}

/// 0: not begun. The number of the process that registers the handlers, or [`INSTALLED`].
static INSTALLING: AtomicI32 = AtomicI32::new(0);
const INSTALLED: i32 = -1;

/// Registers the handlers, once. A child that was forked meanwhile begins again, unless it has
/// them.
pub(crate) fn install() -> io::Result<()> {
    static RESULT: AtomicI32 = AtomicI32::new(0);
    if cfg!(miri) {
        return Ok(());
    }
    let own = std::process::id().cast_signed();
    loop {
        match INSTALLING.load(Ordering::Acquire) {
            INSTALLED => break,
            by if by == own => std::thread::yield_now(),
            by => {
                if INSTALLING.compare_exchange(by, own, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    let result = if generation() > 0 { Ok(()) } else { register() };
                    RESULT.store(result.err().unwrap_or(0), Ordering::SeqCst);
                    INSTALLING.store(INSTALLED, Ordering::Release);
                }
            }
        }
    }
    match RESULT.load(Ordering::SeqCst) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// # Errors
/// The system's number.
fn register() -> Result<(), i32> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let tomb = rustix::fs::open("/", flags, rustix::fs::Mode::empty());
    let tomb = tomb.map_err(rustix::io::Errno::raw_os_error)?;
    TOMB.store(std::os::fd::IntoRawFd::into_raw_fd(tomb), Ordering::SeqCst);
    // SAFETY: the handlers are `extern "C"`, never unwind and keep invariant 3.
    match unsafe { libc::pthread_atfork(Some(before), Some(after_parent), Some(after_child)) } {
        0 => Ok(()),
        failed => Err(failed),
    }
}

extern "C" fn before() {
    acquire();
}

extern "C" fn after_parent() {
    FORKS.fetch_add(1, Ordering::SeqCst);
    MAPPING.store(0, Ordering::Release);
}

extern "C" fn after_child() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    let tomb = TOMB.load(Ordering::SeqCst);
    for entry in FDS.onwards().flat_map(|chunk| &chunk.slots) {
        let fd = entry.load(Ordering::SeqCst);
        if fd < 0 {
            continue;
        }
        // SAFETY: the copy of the parent's `ForkFd` (2) in this child is stale; replacing or
        // closing it touches no memory.
        unsafe {
            if libc::dup3(tomb, fd, libc::O_CLOEXEC) < 0 {
                libc::close(fd);
            }
        }
        entry.store(-1, Ordering::SeqCst);
    }
    MAPPING.store(0, Ordering::Release);
}

/// Whether `work` is so in a forked child, which has a minute.
#[cfg(test)]
pub(crate) fn is_so_in_a_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `work` and ends.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: a child that waits for ever is ended by the signal, without the parent's
            // destructors.
            unsafe {
                libc::alarm(60);
                libc::_exit(i32::from(!work()));
            }
        }
        child => {
            let mut status = -1;
            // SAFETY: a place for the status of this process's child.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            status == 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_descriptor_takes_no_place_of_a_closed_standard_stream() {
        assert!(is_so_in_a_child(|| {
            let made = || {
                let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
                rustix::fs::open("/", flags, rustix::fs::Mode::empty()).unwrap()
            };
            // SAFETY: the child uses none of the streams.
            (0..3).for_each(|fd| unsafe { assert_eq!(libc::close(fd), 0) });
            let lowest = made();
            let kept = ForkFd::new(made()).unwrap();
            lowest.as_raw_fd() == 0 && kept.as_fd().as_raw_fd() > 2
        }));
    }
}
