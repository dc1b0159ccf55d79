//! One SIGSEGV handler per process, in front of any earlier handler.
//!
//! Invariants:
//! 1. `PREVIOUS` is filled before the handler can run and never changes afterwards.
//! 2. The handler and its callbacks allocate nothing, take no lock and call only async-signal-safe
//!    functions.
//! 3. All signals are blocked meanwhile: another handler's store to an object would fault while
//!    SIGSEGV is blocked, and end the process. An earlier handler gets the mask that the kernel
//!    would have set.
//! 4. Forbidden accesses go to the [`Exposer`] first, which resolves those of a thread to its own
//!    pages; then forbidden stores to the [`Resolver`]. Making a page writable does not help other
//!    faults, above all jumps. Unresolved faults go to the [`Toucher`], then to the [`Explainer`],
//!    then to an earlier handler.
//!
//! A program that installs its own handler *afterwards* must pass on unknown faults.

#![allow(unsafe_code)]

use super::per_process::PerProcess;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Resolved,
    Foreign,
}

pub(crate) type Resolver = fn(addr: usize) -> Verdict;

pub(crate) type Exposer = fn(addr: usize) -> Verdict;

/// Judges any fault; `mapped`: a mapping there forbids the access.
pub(crate) type Toucher = fn(addr: usize, mapped: bool) -> Verdict;

pub(crate) type Explainer = fn(addr: usize, is_store: bool);

static RESOLVER: AtomicUsize = AtomicUsize::new(0);
static EXPOSER: AtomicUsize = AtomicUsize::new(0);
static TOUCHER: AtomicUsize = AtomicUsize::new(0);
static EXPLAINER: AtomicUsize = AtomicUsize::new(0);
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// si_codes absent from libc: of unmapped addresses (`SEGV_MAPERR`) and mapped ones
/// (`SEGV_ACCERR`).
const SEGV_MAPERR: libc::c_int = 1;
const SEGV_ACCERR: libc::c_int = 2;

pub(crate) fn install(resolver: Resolver) -> io::Result<()> {
    RESOLVER.store(resolver as usize, Ordering::SeqCst);
    install_handler()
}

pub(crate) fn install_exposer(exposer: Exposer) -> io::Result<()> {
    EXPOSER.store(exposer as usize, Ordering::SeqCst);
    install_handler()
}

pub(crate) fn install_toucher(toucher: Toucher) -> io::Result<()> {
    TOUCHER.store(toucher as usize, Ordering::SeqCst);
    install_handler()
}

pub(crate) fn install_explainer(explainer: Explainer) -> io::Result<()> {
    EXPLAINER.store(explainer as usize, Ordering::SeqCst);
    install_handler()
}

pub(crate) fn say(bytes: &[u8]) {
    // SAFETY: borrowed bytes; async-signal-safe (2).
    let _ = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}

/// Bypasses the program's SIGABRT handler, which could jump out and go on with memory that must not
/// be seen. Async-signal-safe.
pub(crate) fn die(why: &str) -> ! {
    [b"indelible: ", why.as_bytes(), b"\n"].into_iter().for_each(say);
    // SAFETY: the default action of a signal; async-signal-safe.
    unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
    std::process::abort()
}

/// Whether a handler of this library is in front of earlier ones.
pub(super) type Installed = PerProcess<Mutex<bool>>;

/// A child inherits the handler; if a thread was installing it at the fork, the kernel tells.
pub(super) fn lock(
    installed: &'static Installed,
    signal: libc::c_int,
    handler: usize,
) -> MutexGuard<'static, bool> {
    let inherited = |parent: &Mutex<bool>| match parent.try_lock() {
        Ok(installed) => *installed,
        Err(TryLockError::Poisoned(installed)) => *installed.into_inner(),
        Err(TryLockError::WouldBlock) => current(signal).is_ok_and(|now| now.sa_sigaction == handler),
    };
    let here = installed.get_or(|parent| Mutex::new(parent.is_some_and(inherited)));
    here.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn current(signal: libc::c_int) -> io::Result<libc::sigaction> {
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the current one.
    match unsafe { libc::sigaction(signal, ptr::null(), current.as_mut_ptr()) } {
        // SAFETY: written by the successful call.
        0 => Ok(unsafe { current.assume_init() }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn install_handler() -> io::Result<()> {
    static INSTALLED: Installed = PerProcess::new();
    let mut installed = lock(&INSTALLED, libc::SIGSEGV, on_segv as *const () as usize);
    if *installed {
        return Ok(());
    }
    // Never freed (1).
    PREVIOUS.store(Box::into_raw(Box::new(current(libc::SIGSEGV)?)), Ordering::SeqCst);
    put_in_front()?;
    *installed = true;
    Ok(())
}

fn put_in_front() -> io::Result<()> {
    // SAFETY: an all-zero `sigaction` is a valid value of this C struct.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_segv as *const () as usize;
    // ONSTACK: the previous handler may report an exhausted stack, as Rust's does.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: a set of ours (3).
    unsafe { libc::sigfillset(&raw mut action.sa_mask) };
    // SAFETY: `action` is complete and its handler keeps invariant 2.
    match unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
pub(crate) fn reinstall_for_tests() {
    let previous = current(libc::SIGSEGV).expect("the kernel tells");
    PREVIOUS.store(Box::into_raw(Box::new(previous)), Ordering::SeqCst);
    let _ = put_in_front();
}

/// # Safety
/// `context` is the kernel's.
#[cfg(target_arch = "x86_64")]
unsafe fn is_store(context: *mut libc::c_void) -> bool {
    const STORE: i64 = 1 << 1;
    const JUMP: i64 = 1 << 4;
    // SAFETY: the caller's promise.
    let code = unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_ERR as usize] };
    code & (STORE | JUMP) == STORE
}

/// The syndrome is in one of the records behind the registers.
///
/// # Safety
/// `context` is the kernel's.
#[cfg(target_arch = "aarch64")]
unsafe fn is_store(context: *mut libc::c_void) -> bool {
    /// Offset and bytes of the records, and this one's magic number.
    const RECORDS: usize = 288;
    const BYTES: usize = 4096;
    const SYNDROME: u32 = 0x4553_5201;
    // SAFETY: the caller's promise.
    let records =
        unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_mcontext).cast::<u8>().add(RECORDS) };
    let mut at = 0;
    while at + 16 <= BYTES {
        // SAFETY: within the records; each is aligned to 16.
        let [mark, size] = unsafe { records.add(at).cast::<[u32; 2]>().read() };
        if mark == SYNDROME {
            // SAFETY: as above.
            let syndrome = unsafe { records.add(at + 8).cast::<u64>().read() };
            // A data abort of user code, caused by a write.
            return syndrome >> 26 & 0x3f == 0x24 && syndrome >> 6 & 1 == 1;
        }
        if mark == 0 || size < 16 {
            break;
        }
        at += size as usize;
    }
    true
}

/// Unknown elsewhere.
///
/// # Safety
/// None.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn is_store(_: *mut libc::c_void) -> bool {
    true
}

extern "C" fn on_segv(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: errno's location belongs to this thread; the interrupted code must find it unchanged.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let (code, addr) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let exposer = EXPOSER.load(Ordering::Relaxed);
    if code == SEGV_ACCERR && exposer != 0 {
        // SAFETY: `install_exposer` stored an `Exposer`.
        let exposer: Exposer = unsafe { std::mem::transmute::<usize, Exposer>(exposer) };
        if exposer(addr) == Verdict::Resolved {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
            return;
        }
    }
    let resolver = RESOLVER.load(Ordering::Relaxed);
    // Other codes: unmapped, or a sent signal, whose address means nothing. SAFETY: the kernel's
    // context.
    if code == SEGV_ACCERR && resolver != 0 && unsafe { is_store(context) } {
        // SAFETY: `install` stored a `Resolver` before it installed this handler.
        let resolver: Resolver = unsafe { std::mem::transmute::<usize, Resolver>(resolver) };
        if resolver(addr) == Verdict::Resolved {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
            return;
        }
    }
    let toucher = TOUCHER.load(Ordering::Relaxed);
    if matches!(code, SEGV_MAPERR | SEGV_ACCERR) && toucher != 0 {
        // SAFETY: `install_toucher` stored a `Toucher`.
        let toucher: Toucher = unsafe { std::mem::transmute::<usize, Toucher>(toucher) };
        if toucher(addr, code == SEGV_ACCERR) == Verdict::Resolved {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
            return;
        }
    }
    let explainer = EXPLAINER.load(Ordering::Relaxed);
    if matches!(code, SEGV_MAPERR | SEGV_ACCERR) && explainer != 0 {
        // SAFETY: `install_explainer` stored an `Explainer`.
        let explainer: Explainer = unsafe { std::mem::transmute::<usize, Explainer>(explainer) };
        // SAFETY: the kernel's context.
        explainer(addr, unsafe { is_store(context) });
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    // SAFETY: filled before the handler ran and never freed (1).
    let previous = unsafe { &*PREVIOUS.load(Ordering::Relaxed) };
    pass_on(previous, signal, code, info, context);
}

pub(super) fn pass_on(
    previous: &libc::sigaction,
    signal: libc::c_int,
    code: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    match previous.sa_sigaction {
        libc::SIG_IGN if code <= 0 => {}
        // The kernel does not let a fault be ignored either.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores the default action; the faulting instruction runs again and ends the
            // process. A sent signal needs to be sent again.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if code <= 0 {
                    libc::raise(signal);
                }
            }
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            restore_mask(previous, signal, context);
            type Full = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            // SAFETY: SA_SIGINFO says that the handler has this signature.
            let handler: Full = unsafe { std::mem::transmute::<usize, Full>(handler) };
            handler(signal, info, context);
        }
        handler => {
            restore_mask(previous, signal, context);
            type Short = extern "C" fn(libc::c_int);
            // SAFETY: without SA_SIGINFO the handler has this signature.
            let handler: Short = unsafe { std::mem::transmute::<usize, Short>(handler) };
            handler(signal);
        }
    }
}

fn restore_mask(action: &libc::sigaction, raised: libc::c_int, context: *mut libc::c_void) {
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: sets of ours and the kernel's context, of which only kernel-written parts are read.
    unsafe {
        libc::sigemptyset(mask.as_mut_ptr());
        let interrupted = &raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask;
        for signal in 1..=64 {
            let own = signal == raised && action.sa_flags & libc::SA_NODEFER == 0;
            if own
                || libc::sigismember(interrupted, signal) == 1
                || libc::sigismember(&raw const action.sa_mask, signal) == 1
            {
                libc::sigaddset(mask.as_mut_ptr(), signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut());
    }
}
