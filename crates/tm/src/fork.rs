//! Forks: no block is within its commit during a fork, and the child's blocks ignore threads that
//! it lacks.

use crate::blocks::Thread;
use crate::{objects, words};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Number of forks from a user of this library to this process.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: functions without arguments that live as long as the process: the library is
        // never unloaded.
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
