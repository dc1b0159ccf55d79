//! Blocking a thread's signals, replacing SIGXFSZ by an error, and SIGCHLD's default.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Until drop no handler runs on this thread, except for its own faults. Async-signal-safe.
pub(crate) struct Blocked {
    before: libc::sigset_t,
    _thread: PhantomData<*const ()>,
}

impl Blocked {
    pub(crate) fn all() -> Blocked {
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the calls fill the given sets, and cannot fail with these arguments.
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Blocked { before, _thread: PhantomData }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: restores the mask that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Lets a write beyond the file-size limit fail with `EFBIG` instead of raising SIGXFSZ. Child
/// programs get the default back.
#[doc(hidden)]
pub fn survive_size_limit() {
    extern "C" fn ignore(_: libc::c_int) {}
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a zeroed `sigaction` is a valid one; the handler does nothing.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = ignore as *const () as usize;
        (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, action.as_ptr(), std::ptr::null_mut());
    }
}

/// Sets SIGCHLD to its default: where its parent ignored it, this process would learn no status of
/// a child's. For programs alone: a library leaves its process's signals alone.
#[doc(hidden)]
pub fn keep_statuses() {
    // SAFETY: the default action runs no code of this process.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}
