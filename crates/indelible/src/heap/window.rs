//! Checked access to the bytes of the heap's object.
//!
//! Invariants of [`Window`]:
//!
//! 1. `base` begins on a page; `[base, base + len)` is mapped and readable as long as the window
//!    lives, writable if `writable`. A window of copies has these in place of the mapping, and
//!    accesses nothing at `base`.
//! 2. All that the heap refers to in place is atomics: other threads, and stray stores, make wrong
//!    values, never invalid ones.

#![allow(unsafe_code)]

use super::copies::Copies;
use super::error::{Result, damaged};
use super::layout::{PAGE, Shared};
use crate::dirty::DirtyLines;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) struct Window {
    base: NonNull<u8>,
    len: AtomicUsize,
    pub(super) writable: bool,
    marks: Option<Arc<DirtyLines>>,
    copies: Option<Arc<Copies>>,
}

// SAFETY: access goes through atomics (2), or copies of bytes that the heap's lock guards.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Window {
    /// # Safety
    /// (1) holds.
    pub(super) unsafe fn new(
        base: NonNull<u8>,
        len: usize,
        writable: bool,
        marks: Option<Arc<DirtyLines>>,
    ) -> Window {
        let len = AtomicUsize::new(len / PAGE as usize * PAGE as usize);
        Window { base, len, writable, marks, copies: None }
    }

    pub(super) fn of_copies(base: NonNull<u8>, len: usize, copies: Arc<Copies>) -> Window {
        let len = AtomicUsize::new(len / PAGE as usize * PAGE as usize);
        Window { base, len, writable: true, marks: None, copies: Some(copies) }
    }

    pub(super) fn is_explicit(&self) -> bool {
        self.marks.is_some()
    }

    pub(super) fn mark_dirty(&self, offset: u64, len: usize) {
        if let Some(marks) = &self.marks {
            let start = offset as usize;
            marks.mark(std::iter::once(start..start.saturating_add(len)));
        }
    }

    #[inline]
    pub(super) fn base(&self) -> usize {
        self.base.addr().get()
    }

    pub(super) fn pages(&self) -> u64 {
        self.len.load(Ordering::Relaxed) as u64 / PAGE
    }

    /// # Safety
    /// (1) holds for the new length.
    pub(super) unsafe fn extend(&self, len: usize) {
        self.len.fetch_max(len / PAGE as usize * PAGE as usize, Ordering::Relaxed);
    }

    pub(super) fn offset_of(&self, address: usize) -> Option<u64> {
        let offset = address.wrapping_sub(self.base());
        (offset < self.len.load(Ordering::Relaxed)).then_some(offset as u64)
    }

    fn within(&self, offset: u64, len: usize) -> Result<*mut u8> {
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| end > self.len.load(Ordering::Relaxed) as u64) {
            return damaged(offset, "this lies beyond the end of the object");
        }
        if let Some(copies) = &self.copies {
            return copies.within(offset, len);
        }
        // SAFETY: within the mapping (1).
        Ok(unsafe { self.base.as_ptr().add(offset as usize) })
    }

    pub(super) fn at<T: Shared>(&self, offset: u64) -> Result<&T> {
        Ok(&self.slice(offset, 1)?[0])
    }

    pub(super) fn slice<T: Shared>(&self, offset: u64, count: usize) -> Result<&[T]> {
        if !offset.is_multiple_of(align_of::<T>() as u64) {
            return damaged(offset, "this address is misaligned");
        }
        let at = self.within(offset, size_of::<T>().saturating_mul(count))?;
        // SAFETY: mapped or copied (1), aligned, of atomics only (2), borrowed as `self` is.
        Ok(unsafe { std::slice::from_raw_parts(at.cast(), count) })
    }

    pub(super) fn pointer(&self, offset: u64, len: usize) -> Result<NonNull<u8>> {
        self.within(offset, len).map(|at| NonNull::new(at).unwrap_or(NonNull::dangling()))
    }

    pub(super) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let at = self.within(offset, bytes.len())?;
        // SAFETY: mapped (1); `bytes` is the process's own; the caller has the lock of these bytes.
        unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.within(offset, bytes.len())?;
        debug_assert!(self.writable, "the heap asks first");
        // SAFETY: as for `read`; free or the heap's own, without references to it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        self.mark_dirty(offset, bytes.len());
        Ok(())
    }

    pub(super) fn fill(&self, offset: u64, len: usize, byte: u8) -> Result<()> {
        let at = self.within(offset, len)?;
        debug_assert!(self.writable, "the heap asks first");
        // SAFETY: as for `write`.
        unsafe { at.write_bytes(byte, len) };
        self.mark_dirty(offset, len);
        Ok(())
    }

    pub(super) fn copy(&self, from: u64, to: u64, len: usize) -> Result<()> {
        let (source, target) = (self.within(from, len)?, self.within(to, len)?);
        // SAFETY: mapped (1); the caller of `realloc` has both blocks for itself.
        unsafe { std::ptr::copy(source, target, len) };
        self.mark_dirty(to, len);
        Ok(())
    }
}
