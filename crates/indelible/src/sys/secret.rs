//! Memory for secrets in pages without core dumps, and without swap if the process may lock memory.
//!
//! Invariants:
//! 1. The mapping of a [`SecretPages`] is its own, belongs to no thread, and lives as long as it
//!    does.
//! 2. Its bytes are changed through `&mut` only.

#![allow(unsafe_code)]

use super::{PAGE, mmap};
use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous};
use std::ptr::{self, NonNull};
use zeroize::Zeroize;

pub(crate) struct SecretPages {
    start: NonNull<u8>,
    len: usize,
    mapped: usize,
}

// SAFETY: (1), (2).
unsafe impl Send for SecretPages {}
// SAFETY: (1), (2).
unsafe impl Sync for SecretPages {}

impl SecretPages {
    pub(crate) fn new(len: usize) -> Option<SecretPages> {
        let mapped = len.max(1).next_multiple_of(PAGE);
        // SAFETY: (1) no address is given, so the mapping replaces nothing.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let start = NonNull::new(start.ok()?.cast::<u8>())?;
        let pages = SecretPages { start, len, mapped };
        mmap::dont_dump(start.as_ptr().expose_provenance(), mapped).ok()?;
        // SAFETY: the range is mapped (1); locking changes neither contents nor access. Without the
        // right to lock, the secret may be swapped out (SAFETY.md).
        let _ = unsafe { mlock(start.as_ptr().cast(), mapped) };
        Some(pages)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: (1), and (2).
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: (1); no other code has the bytes (2).
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for SecretPages {
    fn drop(&mut self) {
        self.bytes_mut().zeroize();
        // SAFETY: (1) the mapping is this value's, and no longer used.
        let _ = unsafe { mmap::unmap(self.start.as_ptr().expose_provenance(), self.mapped) };
    }
}
