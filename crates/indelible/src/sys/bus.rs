//! Pages of shared files that another process truncated away. An access raises SIGBUS, which would
//! kill this process.
//!
//! Invariants:
//! 1. A slot whose `end` is not 0 describes a mapping of this process that lives until the slot was
//!    withdrawn.
//! 2. The handler allocates nothing, takes no lock and calls only async-signal-safe functions.
//! 3. `PREVIOUS` is filled before the handler can run and never changes afterwards.
//!
//! Within a known range the handler replaces a lost page by zeros and counts it; users check that
//! count before they trust bytes. Other faults go to the earlier handler.

#![allow(unsafe_code)]

use super::per_process::PerProcess;
use super::{PAGE, fork, signal};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::io;
use std::ptr::{self, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

const SLOTS: usize = 1024;
/// si_code of an access behind the file's end (`BUS_ADRERR`), absent from libc.
const BUS_ADRERR: libc::c_int = 2;

struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    gone: AtomicUsize,
    generation: AtomicU32,
}

static KNOWN: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        gone: AtomicUsize::new(0),
        generation: AtomicU32::new(0),
    }
}; SLOTS];
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Dropped before the range is unmapped.
pub(crate) struct Watched(&'static Slot);

impl Watched {
    pub(crate) fn new(start: usize, len: usize) -> io::Result<Watched> {
        install()?;
        let free = KNOWN.iter().find(|slot| !slot.taken.swap(true, Ordering::SeqCst));
        let slot = free.ok_or_else(|| io::Error::other("a process has 1,024 shared mappings at most"))?;
        slot.gone.store(0, Ordering::SeqCst);
        slot.generation.store(fork::generation(), Ordering::SeqCst);
        slot.start.store(start, Ordering::SeqCst);
        slot.end.store(start + len, Ordering::SeqCst);
        Ok(Watched(slot))
    }

    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.0.gone.load(Ordering::Acquire) != 0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::SeqCst);
        self.0.taken.store(false, Ordering::SeqCst);
    }
}

fn install() -> io::Result<()> {
    static INSTALLED: signal::Installed = PerProcess::new();
    let handler = on_bus as *const () as usize;
    let mut installed = signal::lock(&INSTALLED, libc::SIGBUS, handler);
    if *installed {
        return Ok(());
    }
    // Never freed (3).
    PREVIOUS.store(Box::into_raw(Box::new(signal::current(libc::SIGBUS)?)), Ordering::SeqCst);
    // SAFETY: an all-zero `sigaction` is a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: a set of ours.
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: `action` is complete and its handler keeps invariant 2.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
        0 => {
            *installed = true;
            Ok(())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Replaces a lost page by zeros. Async-signal-safe.
fn replace(addr: usize) -> bool {
    let covers = |slot: &&Slot| {
        let end = slot.end.load(Ordering::SeqCst);
        let start = slot.start.load(Ordering::SeqCst);
        // Unless the slot became another range's in between.
        end == slot.end.load(Ordering::SeqCst)
            && (start..end).contains(&addr)
            && !fork::is_stale(slot.generation.load(Ordering::SeqCst))
    };
    let Some(slot) = KNOWN.iter().find(covers) else { return false };
    slot.gone.fetch_add(1, Ordering::SeqCst);
    let page = with_exposed_provenance_mut(addr & !(PAGE - 1));
    let (access, how) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: a page of a live mapping (1), which the file lacks: nothing is lost.
    unsafe { mmap_anonymous(page, PAGE, access, how) }.is_ok()
}

extern "C" fn on_bus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: errno's location belongs to this thread; the interrupted code must find it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let (code, addr) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let replaced = code == BUS_ADRERR && replace(addr);
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    if !replaced {
        // SAFETY: filled before the handler ran and never freed (3).
        let previous = unsafe { &*PREVIOUS.load(Ordering::Relaxed) };
        signal::pass_on(previous, signal, code, info, context);
    }
}
