//! The ways in which bytes get into a program's memory.
//!
//! Each puts bytes into an attached object as code unaware of psync might.

#![allow(unsafe_code)]

use super::uring::Ring;
use anyhow::{Context, Result, bail};
use indelible::Tracking;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Granularity of `O_DIRECT` reads.
const SECTOR: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Means {
    Plain,
    String,
    Streaming,
    Atomics,
    Thread,
    SignalHandler,
    Read,
    Readv,
    Recv,
    Direct,
    OtherProcess,
    ProcMem,
    Ptrace,
    IoUring,
    DontNeed,
}

impl Means {
    pub(crate) const ALL: [Means; 15] = [
        Means::Plain,
        Means::String,
        Means::Streaming,
        Means::Atomics,
        Means::Thread,
        Means::SignalHandler,
        Means::Read,
        Means::Readv,
        Means::Recv,
        Means::Direct,
        Means::OtherProcess,
        Means::ProcMem,
        Means::Ptrace,
        Means::IoUring,
        Means::DontNeed,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Means::Plain => "plain stores",
            Means::String => "string instructions",
            Means::Streaming => "non-temporal stores",
            Means::Atomics => "atomics",
            Means::Thread => "memcpy by another thread",
            Means::SignalHandler => "a signal handler",
            Means::Read => "read",
            Means::Readv => "readv",
            Means::Recv => "recv",
            Means::Direct => "read with O_DIRECT",
            Means::OtherProcess => "process_vm_writev by another process",
            Means::ProcMem => "/proc/self/mem",
            Means::Ptrace => "ptrace by another process",
            Means::IoUring => "io_uring, registered buffer",
            Means::DontNeed => "plain stores, pages dropped after psync",
        }
    }

    /// Whether tracking misses it, so that it needs a mark (SAFETY.md).
    pub(crate) fn needs_mark(self, tracking: Tracking) -> bool {
        match self {
            Means::IoUring => true,
            // Another process is a child here, and psync scans after a fork.
            Means::ProcMem | Means::Ptrace => !matches!(tracking, Tracking::WpAsync | Tracking::FaultLog),
            _ => tracking == Tracking::Explicit,
        }
    }

    /// Whether the kernel refuses it with `EFAULT` on pages unchanged since a psync.
    pub(crate) fn is_refused(self, tracking: Tracking) -> bool {
        let call = [Means::Read, Means::Readv, Means::Recv, Means::Direct, Means::OtherProcess];
        tracking == Tracking::Mprotect && call.contains(&self)
    }
}

pub(crate) struct Tools {
    means: Means,
    file: std::fs::File,
    direct: Option<std::fs::File>,
    ring: Option<Ring>,
}

impl Tools {
    /// # Errors
    /// This machine does not allow the means.
    ///
    /// # Safety
    /// `[base, base + len)` is an attached object that outlives this.
    pub(crate) unsafe fn new(means: Means, folder: &Path, base: *mut u8, len: usize) -> Result<Tools> {
        let name = folder.join(format!("source-{}", std::process::id()));
        let open = |flags| {
            let mut options = std::fs::OpenOptions::new();
            options.read(true).write(true).create(true).custom_flags(flags).open(&name)
        };
        let file = open(0)?;
        let direct =
            if means == Means::Direct { Some(open(libc::O_DIRECT).context("O_DIRECT")?) } else { None };
        std::fs::remove_file(&name)?;
        let ring = if means == Means::IoUring {
            // SAFETY: the caller's promise.
            let pinned = unsafe { Ring::pin(base, len) };
            Some(pinned.context("io_uring with registered buffers")?)
        } else {
            None
        };
        Ok(Tools { means, file, direct, ring })
    }

    pub(crate) fn grain(&self) -> usize {
        if self.means == Means::Direct { SECTOR } else { 8 }
    }

    /// Puts `bytes` at `at`.
    ///
    /// # Errors
    /// The kernel's; `EFAULT` on protected pages.
    ///
    /// # Safety
    /// The place lies in the object, and no reference to it exists.
    pub(crate) unsafe fn put(&mut self, at: *mut u8, bytes: &[u8]) -> Result<()> {
        let len = bytes.len();
        // SAFETY: the caller's promise, for all of them.
        unsafe {
            match self.means {
                Means::Plain | Means::DontNeed => at.copy_from_nonoverlapping(bytes.as_ptr(), len),
                Means::String => string(at, bytes),
                Means::Streaming => streaming(at, bytes),
                Means::Atomics => bytes.iter().enumerate().for_each(|(index, byte)| {
                    AtomicU8::from_ptr(at.add(index)).swap(*byte, Ordering::AcqRel);
                }),
                Means::Thread => {
                    let at = AtomicUsize::new(at.expose_provenance());
                    std::thread::scope(|scope| {
                        scope.spawn(|| {
                            let at = std::ptr::with_exposed_provenance_mut::<u8>(at.load(Ordering::Relaxed));
                            at.copy_from_nonoverlapping(bytes.as_ptr(), len);
                        });
                    });
                }
                Means::SignalHandler => by_signal(at, bytes),
                Means::Read => {
                    self.file.write_all_at(bytes, 0)?;
                    whole(libc::pread(self.file.as_raw_fd(), at.cast(), len, 0), len)?;
                }
                Means::Readv => {
                    self.file.write_all_at(bytes, 0)?;
                    let half = len / 2;
                    let parts = [
                        libc::iovec { iov_base: at.cast(), iov_len: half },
                        libc::iovec { iov_base: at.add(half).cast(), iov_len: len - half },
                    ];
                    whole(libc::preadv(self.file.as_raw_fd(), parts.as_ptr(), 2, 0), len)?;
                }
                Means::Recv => {
                    let (mut here, there) = UnixStream::pair()?;
                    here.write_all(bytes)?;
                    whole(libc::recv(there.as_raw_fd(), at.cast(), len, libc::MSG_WAITALL), len)?;
                }
                Means::Direct => {
                    self.file.write_all_at(bytes, 0)?;
                    self.file.sync_data()?;
                    let file = self.direct.as_ref().context("opened for it")?;
                    whole(libc::pread(file.as_raw_fd(), at.cast(), len, 0), len)?;
                }
                Means::OtherProcess => by_child(|parent| {
                    let from = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: len };
                    let to = libc::iovec { iov_base: at.cast(), iov_len: len };
                    libc::process_vm_writev(parent, &raw const from, 1, &raw const to, 1, 0) == len as isize
                })?,
                Means::ProcMem => {
                    let memory = std::fs::OpenOptions::new().write(true).open("/proc/self/mem")?;
                    memory.write_all_at(bytes, at.addr() as u64)?;
                }
                Means::Ptrace => by_child(|parent| {
                    let none = std::ptr::null_mut::<libc::c_void>();
                    if libc::ptrace(libc::PTRACE_SEIZE, parent, none, none) != 0
                        || libc::ptrace(libc::PTRACE_INTERRUPT, parent, none, none) != 0
                    {
                        return false;
                    }
                    let mut status = 0;
                    libc::waitpid(parent, &raw mut status, libc::__WALL);
                    let stored = bytes.chunks_exact(8).enumerate().all(|(index, word)| {
                        let word = u64::from_ne_bytes(word.try_into().unwrap_or_default());
                        let to = at.add(index * 8).cast::<libc::c_void>();
                        libc::ptrace(libc::PTRACE_POKEDATA, parent, to, word) == 0
                    });
                    libc::ptrace(libc::PTRACE_DETACH, parent, none, none);
                    stored
                })?,
                Means::IoUring => {
                    self.file.write_all_at(bytes, 0)?;
                    let ring = self.ring.as_mut().context("made for it")?;
                    ring.read(self.file.as_raw_fd(), 0, at, len as u32)?;
                }
            }
        }
        Ok(())
    }
}

fn whole(done: isize, len: usize) -> io::Result<()> {
    match usize::try_from(done) {
        Ok(done) if done == len => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// # Safety
/// As for [`Tools::put`].
unsafe fn string(at: *mut u8, bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!("rep movsb", inout("rcx") bytes.len() => _, inout("rsi") bytes.as_ptr() => _, inout("rdi") at => _);
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
}

/// # Safety
/// As for [`Tools::put`], and `at` is a multiple of 8.
unsafe fn streaming(at: *mut u8, bytes: &[u8]) {
    for (index, word) in bytes.chunks_exact(8).enumerate() {
        let word = i64::from_ne_bytes(word.try_into().unwrap_or_default());
        // SAFETY: the caller's promise.
        unsafe {
            let to = at.add(index * 8).cast::<i64>();
            #[cfg(target_arch = "x86_64")]
            std::arch::x86_64::_mm_stream_si64(to, word);
            #[cfg(not(target_arch = "x86_64"))]
            to.write_volatile(word);
        }
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: orders stores, nothing else.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

static TARGET: AtomicUsize = AtomicUsize::new(0);
static SOURCE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let from = std::ptr::with_exposed_provenance::<u8>(SOURCE.load(Ordering::SeqCst));
    let to = std::ptr::with_exposed_provenance_mut::<u8>(TARGET.load(Ordering::SeqCst));
    // SAFETY: set by `by_signal`, which waits for the end of this.
    unsafe { to.copy_from_nonoverlapping(from, LENGTH.load(Ordering::SeqCst)) };
}

/// # Safety
/// As for [`Tools::put`].
unsafe fn by_signal(at: *mut u8, bytes: &[u8]) {
    TARGET.store(at.expose_provenance(), Ordering::SeqCst);
    SOURCE.store(bytes.as_ptr().expose_provenance(), Ordering::SeqCst);
    LENGTH.store(bytes.len(), Ordering::SeqCst);
    // SAFETY: the handler makes only stores that this thread could make; `raise` returns after it.
    unsafe {
        libc::signal(libc::SIGUSR1, on_signal as *const () as usize);
        libc::raise(libc::SIGUSR1);
    }
}

/// A child does it to this waiting process.
///
/// # Safety
/// `act` makes system calls only.
unsafe fn by_child(act: impl FnOnce(libc::pid_t) -> bool) -> Result<()> {
    let (mut here, mut there) = UnixStream::pair()?;
    // The child may have outlived this process. SAFETY: has no conditions.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child only makes system calls.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(here);
        let mut go = [0];
        let may = there.read(&mut go).is_ok_and(|n| n == 1);
        // SAFETY: the parent waits for this process's end.
        unsafe { libc::_exit(i32::from(!(may && act(parent)))) };
    }
    if child < 0 {
        return Err(io::Error::last_os_error().into());
    }
    // Some systems let only chosen processes do it; elsewhere it fails, and is not needed. SAFETY:
    // names a child of this process.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, child, 0, 0, 0) };
    here.write_all(&[1])?;
    let mut status = 0;
    loop {
        // SAFETY: waits for the child made above.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            break;
        }
    }
    if status != 0 {
        return Err(io::Error::from_raw_os_error(libc::EFAULT).into());
    }
    Ok(())
}

/// Drops a page, as allocators do that give memory back.
///
/// # Safety
/// No reference to the page exists.
pub(crate) unsafe fn drop_page(at: *mut u8) -> Result<()> {
    let page = at.wrapping_sub(at.addr() % 4096);
    // SAFETY: the caller's promise.
    if unsafe { libc::madvise(page.cast(), 4096, libc::MADV_DONTNEED) } != 0 {
        bail!("madvise: {}", io::Error::last_os_error());
    }
    Ok(())
}
