//! Self-relative pointers: valid wherever the bytes around them lie, as in copies of an object.

use crate::plain::Plain;
use std::fmt;
use std::marker::PhantomData;

/// A pointer stored as the distance from itself to its target; zeros are null.
///
/// It is valid only in place, so it cannot be copied or cloned: pointer and target move together or
/// not at all.
///
/// ```
/// # extern crate indelible_types as indelible;
/// use indelible::Relative;
///
/// let mut pair = (7_u64, Relative::<u64>::null());
/// let target = &raw mut pair.0;
/// pair.1.set(target);
/// assert_eq!(pair.1.get(), target);
/// pair.1.set(std::ptr::null_mut());
/// assert!(pair.1.get().is_null());
/// ```
#[repr(transparent)]
pub struct Relative<T> {
    distance: i64,
    target: PhantomData<*mut T>,
}

impl<T> Relative<T> {
    /// A null pointer.
    #[must_use]
    pub const fn null() -> Self {
        Relative { distance: 0, target: PhantomData }
    }

    /// The target. Following it is the caller's `unsafe`.
    #[must_use]
    pub fn get(&self) -> *mut T {
        match self.distance {
            0 => std::ptr::null_mut(),
            distance => {
                let own = std::ptr::from_ref(self).addr();
                std::ptr::with_exposed_provenance_mut(own.wrapping_add_signed(distance as isize))
            }
        }
    }

    /// Points to `target`, which is not this pointer itself.
    pub fn set(&mut self, target: *mut T) {
        self.distance = if target.is_null() {
            0
        } else {
            target.expose_provenance().wrapping_sub(std::ptr::from_ref(self).addr()) as i64
        };
    }
}

impl<T> Default for Relative<T> {
    fn default() -> Self {
        Relative::null()
    }
}

impl<T> fmt::Debug for Relative<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relative({:+})", self.distance)
    }
}

#[allow(unsafe_code)]
// SAFETY: any distance is one; the layout is that of an i64; following it is the user's `unsafe`.
unsafe impl<T> Plain for Relative<T> {
    const SHARED: bool = false;
}
