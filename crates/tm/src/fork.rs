//! Forks: no block is in the middle of its commit when the process is copied, and the child's
//! blocks know nothing of threads that it does not have.

use crate::blocks::Thread;
use crate::{objects, words};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How often this process is a child of one that used this library.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Sees to forks from now on.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: functions without arguments, which are there as long as the process: the library
        // is not unloaded.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

extern "C" fn prepare() {
    Thread::hold_still();
}

extern "C" fn parent() {
    Thread::go_on();
}

extern "C" fn child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // Its locks may be those of threads that are not here.
    words::forget();
    objects::forget();
    Thread::go_on();
}
