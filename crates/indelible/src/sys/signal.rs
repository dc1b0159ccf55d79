//! One SIGSEGV handler per process, in front of whatever was there.
//!
//! Invariants:
//! 1. `PREVIOUS` is filled before the handler can run and never changes afterwards.
//! 2. The handler, and the function given to [`install`], allocate nothing, take no lock and call
//!    only async-signal-safe functions.
//!
//! A program that installs a handler of its own *after* us must pass on what it does not know.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// What the fault's address turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Ours, and resolved: run the instruction again.
    Resolved,
    /// Not ours: the previous handler's business.
    Foreign,
}

/// Looks at a fault: its address, and whether a page is mapped there but forbids the access.
pub(crate) type Resolver = fn(addr: usize, forbidden: bool) -> Verdict;

static RESOLVER: AtomicUsize = AtomicUsize::new(0);
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Si_code of a fault at a mapped address (`SEGV_ACCERR`), absent from libc.
const SEGV_ACCERR: libc::c_int = 2;

/// Installs the handler, once; later calls have no effect.
pub(crate) fn install(resolver: Resolver) -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    RESOLVER.store(resolver as usize, Ordering::SeqCst);
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action the call only writes the current one to `previous`.
    if unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), previous.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: written by the successful call above; never freed (1).
    PREVIOUS.store(Box::into_raw(Box::new(unsafe { previous.assume_init() })), Ordering::SeqCst);
    // SAFETY: an all-zero `sigaction` is a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_segv as *const () as usize;
    // ONSTACK: with an exhausted stack the previous handler (Rust's own reports that) needs one.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: `action` is complete and its handler keeps invariant 2.
    if unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *installed = true;
    Ok(())
}

/// In a test's child process: puts the handler in front of whatever is there now.
#[cfg(test)]
pub(crate) fn reinstall_for_tests() {
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: as in `install`; the child has one thread.
    unsafe {
        libc::sigaction(libc::SIGSEGV, ptr::null(), previous.as_mut_ptr());
        PREVIOUS.store(Box::into_raw(Box::new(previous.assume_init())), Ordering::SeqCst);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_segv as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
    }
}

extern "C" fn on_segv(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: errno's location belongs to this thread; the interrupted code must find it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let (code, addr) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let resolver = RESOLVER.load(Ordering::Relaxed);
    // si_code ≤ 0: sent by a process, the address means nothing.
    if code > 0 && resolver != 0 {
        // SAFETY: `install` stored a `Resolver` before it installed this handler.
        let resolver: Resolver = unsafe { std::mem::transmute::<usize, Resolver>(resolver) };
        if resolver(addr, code == SEGV_ACCERR) == Verdict::Resolved {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
            return;
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    pass_on(signal, code, info, context);
}

fn pass_on(signal: libc::c_int, code: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.load(Ordering::Relaxed);
    // SAFETY: filled before the handler ran and never freed (1).
    let previous = unsafe { &*previous };
    match previous.sa_sigaction {
        libc::SIG_IGN if code <= 0 => {}
        // The kernel does not let a fault be ignored either.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores the default action; the faulting instruction runs again and ends
            // the process with the right signal. A sent signal has to be sent again.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: SA_SIGINFO says that the handler has this signature.
            let handler: Full = unsafe { std::mem::transmute::<usize, Full>(handler) };
            handler(signal, info, context);
        }
        handler => {
            type Short = extern "C" fn(libc::c_int);
            // SAFETY: without SA_SIGINFO the handler has this signature.
            let handler: Short = unsafe { std::mem::transmute::<usize, Short>(handler) };
            handler(signal);
        }
    }
}
