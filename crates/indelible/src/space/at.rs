#![allow(unsafe_code)]

use super::attached::Attached;
use super::place::Range;
use super::{FOLLOW, LOADS, Space};
use crate::error::{FarError, Result};
use crate::far::Far;
use crate::plain::Plain;
use std::fmt;
use std::ops::Deref;

/// A value in an object of a [`Space`], from which its pointers can be followed.
pub struct At<'s, T> {
    space: &'s Space,
    home: &'s Attached,
    value: &'s T,
}

impl<'s, T> At<'s, T> {
    pub(super) fn of(space: &'s Space, home: &'s Attached, value: &'s T) -> Self {
        At { space, home, value }
    }

    /// The value, borrowed as long as the space.
    #[must_use]
    #[inline]
    pub fn value(&self) -> &'s T {
        self.value
    }

    pub(super) fn beside<U>(&self, value: &'s U) -> At<'s, U> {
        At { space: self.space, home: self.home, value }
    }

    /// A part of this value, such as a field. `None`: not a part.
    ///
    /// ```
    /// # use indelible::{At, Far};
    /// # #[derive(indelible::Plain)]
    /// # #[repr(C)]
    /// # struct Node { value: u64, next: Far<Node> }
    /// fn place_of_next(node: At<'_, Node>) -> Option<Far<Far<Node>>> {
    ///     Some(node.part(&node.value().next)?.here())
    /// }
    /// ```
    #[must_use]
    pub fn part<U>(&self, part: &'s U) -> Option<At<'s, U>> {
        let (whole, start) = (std::ptr::from_ref(self.value).addr(), std::ptr::from_ref(part).addr());
        let inside = start >= whole && start + size_of::<U>() <= whole + size_of::<T>();
        inside.then(|| self.beside(part))
    }

    /// The object's ID.
    #[must_use]
    pub fn object(&self) -> [u8; 16] {
        self.home.id
    }

    /// This value's place, as a pointer within its object.
    #[must_use]
    pub fn here(&self) -> Far<T> {
        let offset = std::ptr::from_ref(self.value).addr() - self.home.now().base();
        Far::own(offset as u64).unwrap_or_default()
    }

    /// The target of a pointer in the same object. `None`: the pointer is null.
    ///
    /// # Errors
    /// As for [`Space::get`].
    #[inline]
    pub fn follow<U: Plain>(&self, pointer: Far<U>) -> Result<Option<At<'s, U>>> {
        if pointer.is_null() {
            return Ok(None);
        }
        At::new(self.space, self.home, pointer).map(Some)
    }
}

impl<'s, T: Plain> At<'s, T> {
    /// `count` consecutive values from this one on.
    ///
    /// # Errors
    /// `Dangling`: the object ends before.
    pub fn slice(&self, count: usize) -> Result<&'s [T]> {
        let range = self.home.now();
        let offset = (std::ptr::from_ref(self.value).addr() - range.base()) as u64;
        // SAFETY: a range of the space, shared for 's.
        let found = unsafe { range.values::<T>(offset, count) };
        found.map_err(|why| Space::no_values::<T>(self.home, self.home, (offset, count), why))
    }

    /// Inlined into pointer loops: a call would double the time of a step.
    #[inline(always)]
    pub(super) fn new(space: &'s Space, home: &'s Attached, pointer: Far<T>) -> Result<Self> {
        if pointer.index() == 0
            && pointer.offset() != 0
            // SAFETY: a range of the space, shared for 's.
            && let Ok(value) = unsafe { home.range.value::<T>(pointer.offset()) }
        {
            return Ok(At { space, home, value });
        }
        At::across(space, home, pointer)
    }

    #[inline]
    fn across(space: &'s Space, home: &'s Attached, pointer: Far<T>) -> Result<Self> {
        let (index, offset) = (pointer.index(), pointer.offset());
        if offset == 0 {
            return Err(home.error(FOLLOW, FarError::Null));
        }
        if index == 0 {
            return At::within(space, home, home, home.range, offset);
        }
        let (_, target) = space.linked(home, index, LOADS)?;
        At::within(space, home, target, target.range, offset)
    }

    #[inline]
    pub(super) fn within(
        space: &'s Space,
        home: &'s Attached,
        target: &'s Attached,
        range: Range,
        offset: u64,
    ) -> Result<Self> {
        // SAFETY: a range of the space, shared for 's.
        match unsafe { range.value::<T>(offset) } {
            Ok(value) => Ok(At { space, home: target, value }),
            Err(_) => At::behind(space, home, target, offset),
        }
    }

    fn behind(space: &'s Space, home: &'s Attached, target: &'s Attached, offset: u64) -> Result<Self> {
        // SAFETY: as in `within`.
        match unsafe { target.now().value::<T>(offset) } {
            Ok(value) => Ok(At { space, home: target, value }),
            Err(why) => Err(Space::no_value::<T>(home, target, offset, why)),
        }
    }
}

impl<T> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for At<'_, T> {}

impl<T> Deref for At<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for At<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
