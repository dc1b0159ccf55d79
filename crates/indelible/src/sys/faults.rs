#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;

/// System calls' faults included.
pub(crate) fn count() -> io::Result<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the struct that it is given.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: filled by the successful call; zeros are valid anyway.
    let usage = unsafe { usage.assume_init() };
    // The sum wraps long after the process has ended.
    Ok((usage.ru_minflt as u64).wrapping_add(usage.ru_majflt as u64))
}
