//! Plain structures over the bytes of an object: the only unsafe code of this program.
//!
//! Structures lie in the object as in memory, with native pointers, as an object's address never
//! changes. A pointer is checked as an offset before use, also in objects of other writers: damage
//! is an error, not a crash.
//!
//! Invariants:
//! 1. A range of [`locate`] lies within the object, aligned for `T`.
//! 2. A [`Record`] has a value for every bit pattern (`Plain`) and no interior mutability (`Copy`).
//! 3. A [`Record`] has no padding, so that bytes stay bytes.
//! 4. References live as long as the borrow of their slice, shared or exclusive as it is.

#![allow(unsafe_code)]

use crate::layout::{File, Posting, Root, Word};
use anyhow::Result;
use indelible::{Object, Plain};
use indelible_examples::{Damage, Fuse};
use std::ops::Range;

/// Types in the arena.
///
/// # Safety
/// No padding (3).
pub(crate) unsafe trait Record: Plain + Copy {}

// SAFETY: a byte has no padding.
unsafe impl Record for u8 {}
// SAFETY: nor has a pointer.
unsafe impl<T> Record for *mut T {}
// SAFETY: `layout` asserts it.
unsafe impl Record for Root {}
// SAFETY: as above.
unsafe impl Record for Word {}
// SAFETY: as above.
unsafe impl Record for Posting {}
// SAFETY: as above.
unsafe impl Record for File {}

/// The range of `count` values at `at` in an object of `len` bytes from `base`.
fn locate<T>(base: *const u8, len: usize, at: *const T, count: u64) -> Result<Range<usize>, Damage> {
    let range = || {
        let start = at.addr().checked_sub(base.addr())?;
        let end = start.checked_add(usize::try_from(count).ok()?.checked_mul(size_of::<T>())?)?;
        (end <= len && at.addr().is_multiple_of(align_of::<T>())).then_some(start..end)
    };
    range().ok_or_else(|| {
        let kind = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        Damage(format!("{count} × {kind} cannot lie at {at:p} in {len} bytes at {base:p}"))
    })
}

/// The structures, for reading.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        View(bytes)
    }

    pub(crate) fn base(self) -> *const u8 {
        self.0.as_ptr()
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    pub(crate) fn get<T: Record>(self, at: *const T) -> Result<&'a T, Damage> {
        Ok(&self.slice(at, 1)?[0])
    }

    pub(crate) fn slice<T: Record>(self, at: *const T, count: u64) -> Result<&'a [T], Damage> {
        let range = locate(self.base(), self.len(), at, count)?;
        let bytes = &self.0[range];
        // SAFETY: `count` aligned values (1), valid (2), borrowed as the bytes (4).
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    /// A list's values and addresses; an error for more than `most`, or than the object can hold,
    /// as in a ring.
    pub(crate) fn chain<T: Record + 'a>(
        self,
        first: *mut T,
        most: u64,
        next: impl Fn(&T) -> *mut T,
    ) -> impl Iterator<Item = Result<(*mut T, &'a T)>> {
        let (mut at, mut left) = (first, most.min((self.len() / size_of::<T>()) as u64));
        std::iter::from_fn(move || {
            if at.is_null() {
                return None;
            }
            let here = std::mem::replace(&mut at, std::ptr::null_mut());
            if left == 0 {
                return Some(Err(Damage(format!("a list of {most} goes on at {here:p}")).into()));
            }
            left -= 1;
            Some(
                self.get(here)
                    .map(|value| {
                        at = next(value);
                        (here, value)
                    })
                    .map_err(Into::into),
            )
        })
    }
}

/// The structures, for changes.
pub(crate) struct Arena {
    object: Object,
    fuse: Fuse,
}

impl Arena {
    pub(crate) fn new(object: Object, fuse: Fuse) -> Self {
        Arena { object, fuse }
    }

    pub(crate) fn view(&self) -> View<'_> {
        View(self.object.as_slice())
    }

    pub(crate) fn object(&mut self) -> &mut Object {
        &mut self.object
    }

    pub(crate) fn into_object(self) -> Object {
        self.object
    }

    pub(crate) fn get<T: Record>(&mut self, at: *mut T) -> Result<&mut T, Damage> {
        Ok(&mut self.slice(at, 1)?[0])
    }

    pub(crate) fn slice<T: Record>(&mut self, at: *mut T, count: u64) -> Result<&mut [T], Damage> {
        self.fuse.burn();
        let range = locate(self.object.as_ptr(), self.object.len(), at, count)?;
        let bytes = self.object.range_mut(range);
        // SAFETY: as in `View::slice`, and exclusive (4); stores leave bytes (3).
        Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>()) })
    }

    /// Grows the object up to `end`. Its content keeps its address.
    pub(crate) fn reach(&mut self, end: *const u8) -> Result<()> {
        let needed = end.addr().saturating_sub(self.object.as_ptr().addr()) as u64;
        let len = self.object.len() as u64;
        if needed <= len {
            return Ok(());
        }
        // Twice as much, to grow rarely; if impossible, just enough.
        let ample = needed.max(len * 2);
        self.object.grow(ample).or_else(|_| self.object.grow(needed))?;
        Ok(())
    }
}
