//! A value with atomics at the start of an object, for threads that store to it while it is psynced.
//!
//! Invariant: the object is borrowed exclusively as long as a [`Shared`] of it lives, so that all references to the
//! object's bytes are to this one `T`, by this handle.

#![allow(unsafe_code)]

use super::writer::Object;
use crate::error::Result;
use crate::plain::Plain;
use std::marker::PhantomData;
use std::ops::Deref;

/// The value at the start of an object, shared by threads: see [`Object::share`].
#[derive(Debug)]
pub struct Shared<'a, T> {
    object: &'a Object,
    /// `Sync` if a `&T` may be shared, and `Send` as well.
    value: PhantomData<&'a T>,
}

impl<'a, T: Plain> Shared<'a, T> {
    pub(super) fn new(object: &'a Object) -> Self {
        Shared { object, value: PhantomData }
    }

    /// As [`Object::psync_cut`]: a psync while threads store to the value.
    ///
    /// # Errors
    /// As for [`Object::psync`].
    pub fn psync_cut(&self) -> Result<()> {
        self.object.psync_cut()
    }
}

impl<T: Plain> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: large enough and aligned, as `share` made sure; every bit pattern is a T; the invariant.
        unsafe { &*self.object.as_ptr().cast::<T>() }
    }
}
