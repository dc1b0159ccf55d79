//! Holding up a thread's signals.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// No handler runs on this thread until this is dropped, unless it is for a fault of the thread's own. Async-signal-safe.
pub(crate) struct Blocked {
    before: libc::sigset_t,
    /// The mask is the thread's.
    _thread: PhantomData<*const ()>,
}

impl Blocked {
    pub(crate) fn all() -> Blocked {
        let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the calls fill the sets that they are given, and cannot fail with these arguments.
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
