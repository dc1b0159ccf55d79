//! A value or none, with a fixed layout.
//!
//! Invariant of [`POption`]: `some` is 0 or 1 (checked when a reference is made); if 1, `value` is
//! a value.

#![allow(unsafe_code)]

use super::fields::{Field, fields};
use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::persist::{Bounds, Persist, clear_gaps};
use super::place::HeapRef;
use super::points_to::PointsTo;
use super::search::Search;
use crate::error::Result;
use std::fmt;
use std::mem::{MaybeUninit, offset_of};

/// std's `Option` with a fixed layout. Containers of it take an `Option`; convert with `from` and
/// [`take`](POption::take).
#[repr(C)]
pub struct POption<T> {
    some: u8,
    value: MaybeUninit<T>,
}

impl<T> POption<T> {
    pub(super) const FIELDS: &'static [Field] = fields!(POption<T> { some: u8, value: T });

    /// No value.
    #[allow(non_upper_case_globals)]
    pub const NONE: POption<T> = POption { some: 0, value: MaybeUninit::uninit() };

    /// A value.
    #[must_use]
    pub const fn some(value: T) -> Self {
        POption { some: 1, value: MaybeUninit::new(value) }
    }

    /// Whether there is a value.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        self.some == 1
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.some != 1
    }

    /// The value, if any.
    #[must_use]
    pub fn as_ref(&self) -> Option<&T> {
        // SAFETY: `is_some` tells that there is a value.
        self.is_some().then(|| unsafe { self.value.assume_init_ref() })
    }

    /// The value, if any, for storing.
    #[must_use]
    pub fn as_mut(&mut self) -> Option<&mut T> {
        // SAFETY: `is_some` tells that there is a value.
        self.is_some().then(|| unsafe { self.value.assume_init_mut() })
    }

    /// Removes and returns the value, if any.
    pub fn take(&mut self) -> Option<T> {
        let some = self.is_some();
        self.some = 0;
        // SAFETY: a value, taken out once.
        some.then(|| unsafe { self.value.assume_init_read() })
    }

    fn fill(&mut self, value: T) {
        self.value.write(value);
        self.some = 1;
    }

    /// Stores a value; returns the former one.
    pub fn replace(&mut self, value: T) -> Option<T> {
        let old = self.take();
        self.fill(value);
        old
    }

    /// Stores a value; returns a reference to it.
    pub fn insert(&mut self, value: T) -> &mut T {
        drop(self.replace(value));
        // SAFETY: just put there.
        unsafe { self.value.assume_init_mut() }
    }

    /// The value; inserts the result of `make` if missing.
    pub fn get_or_insert_with(&mut self, make: impl FnOnce() -> T) -> &mut T {
        if self.is_none() {
            self.fill(make());
        }
        // SAFETY: there is one now.
        unsafe { self.value.assume_init_mut() }
    }
}

impl<T> Drop for POption<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<T> Default for POption<T> {
    fn default() -> Self {
        POption::NONE
    }
}

impl<T> From<Option<T>> for POption<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(POption::NONE, POption::some)
    }
}

impl<'h, T: Persist<'h>, V: IntoPersist<'h, T>> IntoPersist<'h, POption<T>> for Option<V> {
    #[inline]
    fn into_persist(self, heap: HeapRef<'h>) -> Result<POption<T>> {
        self.map(|value| value.into_persist(heap)).transpose().map(Into::into)
    }
}

impl<T: Clone> Clone for POption<T> {
    fn clone(&self) -> Self {
        self.as_ref().cloned().into()
    }
}

impl<T: PartialEq> PartialEq for POption<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl<T: Eq> Eq for POption<T> {}

impl<T: fmt::Debug> fmt::Debug for POption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl<P: PointsTo> PointsTo for POption<P> {
    type Target = P::Target;
}

// SAFETY: `repr(C)`; the tag is checked, and the value if there is one (1).
unsafe impl<'h, T: Persist<'h>> Persist<'h> for POption<T> {
    const ANY: bool = false;
    const SHARED: bool = T::SHARED;
    const PADDED: bool = size_of::<T>() > 0;

    #[inline]
    unsafe fn clear_padding(at: *mut Self) {
        // SAFETY: the caller's value, whose tag tells whether it has one.
        unsafe {
            let (value, some) = (offset_of!(POption<T>, value), (*at).is_some());
            let tag = (offset_of!(POption<T>, some), 1);
            let field = (value, if some { size_of::<T>() } else { 0 });
            clear_gaps(at.cast(), size_of::<Self>(), [tag, field]);
            if some && T::PADDED {
                T::clear_padding((&raw mut (*at).value).cast());
            }
        }
    }

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are an integer; the value is a field.
        unsafe {
            match (&raw const (*at).some).read() {
                0 => true,
                1 => T::check((&raw const (*at).value).cast(), bounds),
                _ => false,
            }
        }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: as in `check`.
        unsafe {
            match (&raw const (*at).some).read() {
                1 => T::search((&raw const (*at).value).cast(), bounds, search),
                _ => Ok(()),
            }
        }
    }

    fn describe(layout: &mut Layout) {
        layout.word("POption");
        T::describe(layout);
    }

    fn type_name(out: &mut String) {
        out.push_str("POption<");
        T::type_name(out);
        out.push('>');
    }
}
