//! A value with atomics at the start of an object, for threads that store while it is psynced.
//!
//! Invariant: the object is borrowed exclusively as long as a [`Shared`] of it lives: all
//! references to its bytes are to this one `T`, through this handle.

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
    value: PhantomData<&'a T>,
}

impl Object {
    /// The value at the start of the object, for threads that store to its atomics, also during
    /// [`psync_cut`](Shared::psync_cut).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut object = pool.create_attached("o", 4096)?;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let hits = object.share::<[AtomicU64; 2]>()?;
    /// std::thread::scope(|scope| {
    ///     for thread in 0..2 {
    ///         let hits = &hits;
    ///         scope.spawn(move || hits[thread].fetch_add(1, Ordering::Relaxed));
    ///     }
    ///     hits.psync_cut()
    /// })?;
    /// # assert_eq!(hits[0].load(Ordering::Relaxed), 1);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0277
    /// # fn example(object: &mut indelible::Object) -> indelible::Result<()> {
    /// let pointer = object.share::<*mut u8>()?;
    /// std::thread::scope(|scope| { scope.spawn(|| pointer.is_null()); }); // raw pointers are not `Sync`
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// `BadSize` if the object is smaller than a `T`.
    pub fn share<T: Plain>(&mut self) -> Result<Shared<'_, T>> {
        self.check_root::<T>()?;
        self.lend_bytes();
        if let Some(marks) = self.explicit_marks() {
            marks.mark_borrowed(0..size_of::<T>());
        }
        Ok(Shared::new(self))
    }
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
        // SAFETY: large enough and aligned, as `share` made sure; every bit pattern is a T; the
        // invariant.
        unsafe { &*self.object.as_ptr().cast::<T>() }
    }
}
