//! Iterators and slice traits of [`PVec`].
//!
//! Invariant of the iterators: the elements of `rest` lie in the vector's block and are theirs
//! (alone, if for storing); each is checked at its turn.

#![allow(unsafe_code)]

use super::persist::Persist;
use super::place::{lent, verify};
use super::vec::PVec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

/// References to elements, each checked at its turn.
pub struct PIter<'a, T> {
    rest: Range<*mut T>,
    of: PhantomData<&'a [T]>,
}

/// Mutable references to elements.
pub struct PIterMut<'a, T> {
    rest: Range<*mut T>,
    of: PhantomData<&'a mut [T]>,
}

impl<T> PIter<'_, T> {
    /// # Safety
    /// The invariant.
    pub(super) unsafe fn over(rest: Range<*mut T>) -> Self {
        PIter { rest, of: PhantomData }
    }
}

impl<T> PIterMut<'_, T> {
    /// # Safety
    /// The invariant, and the elements are marked.
    pub(super) unsafe fn over(rest: Range<*mut T>) -> Self {
        PIterMut { rest, of: PhantomData }
    }
}

impl<'h, T: Persist<'h>> PVec<'h, T> {
    fn range(&self) -> Range<*mut T> {
        let start = self.start();
        // SAFETY: in the block, or its end.
        start..unsafe { start.add(self.len()) }
    }

    /// The elements.
    pub fn iter(&self) -> PIter<'_, T> {
        PIter { rest: self.range(), of: PhantomData }
    }

    /// Mutable elements.
    pub fn iter_mut(&mut self) -> PIterMut<'_, T> {
        // SAFETY: our elements, marked at once: one by one would cost more than the loop's work.
        unsafe { lent(self.start(), self.len()) };
        PIterMut { rest: self.range(), of: PhantomData }
    }
}

macro_rules! iterator {
    ($name:ident, $reference:ty, $at:ident, $value:expr) => {
        impl<'a, 'h: 'a, T: Persist<'h>> Iterator for $name<'a, T> {
            type Item = $reference;

            #[inline]
            fn next(&mut self) -> Option<$reference> {
                if self.rest.start == self.rest.end {
                    return None;
                }
                let $at = self.rest.start;
                // SAFETY: a remaining element, checked.
                unsafe {
                    self.rest.start = $at.add(1);
                    verify($at);
                    Some($value)
                }
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                let bytes = self.rest.end.addr() - self.rest.start.addr();
                (bytes / size_of::<T>(), Some(bytes / size_of::<T>()))
            }
        }

        impl<'a, 'h: 'a, T: Persist<'h>> DoubleEndedIterator for $name<'a, T> {
            #[inline]
            fn next_back(&mut self) -> Option<$reference> {
                if self.rest.start == self.rest.end {
                    return None;
                }
                // SAFETY: as for `next`.
                unsafe {
                    let $at = self.rest.end.sub(1);
                    self.rest.end = $at;
                    verify($at);
                    Some($value)
                }
            }
        }

        impl<'a, 'h: 'a, T: Persist<'h>> ExactSizeIterator for $name<'a, T> {}
        impl<'a, 'h: 'a, T: Persist<'h>> FusedIterator for $name<'a, T> {}
    };
}

iterator!(PIter, &'a T, at, &*at);
iterator!(PIterMut, &'a mut T, at, &mut *at);

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a PVec<'h, T> {
    type Item = &'a T;
    type IntoIter = PIter<'a, T>;

    fn into_iter(self) -> PIter<'a, T> {
        self.iter()
    }
}

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a mut PVec<'h, T> {
    type Item = &'a mut T;
    type IntoIter = PIterMut<'a, T>;

    fn into_iter(self) -> PIterMut<'a, T> {
        self.iter_mut()
    }
}

impl<'h, T: Persist<'h>> Deref for PVec<'h, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<'h, T: Persist<'h>> DerefMut for PVec<'h, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<'h, T: Persist<'h>> Index<usize> for PVec<'h, T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        match self.get(index) {
            Some(value) => value,
            None => panic!("index {index} of {} elements", self.len()),
        }
    }
}

impl<'h, T: Persist<'h>> IndexMut<usize> for PVec<'h, T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        let len = self.len();
        match self.get_mut(index) {
            Some(value) => value,
            None => panic!("index {index} of {len} elements"),
        }
    }
}

macro_rules! ranges {
    ($($range:ty),*) => {
        $(
            impl<'h, T: Persist<'h>> Index<$range> for PVec<'h, T> {
                type Output = [T];

                fn index(&self, range: $range) -> &[T] {
                    &self.as_slice()[range]
                }
            }

            impl<'h, T: Persist<'h>> IndexMut<$range> for PVec<'h, T> {
                fn index_mut(&mut self, range: $range) -> &mut [T] {
                    self.lend_range(range)
                }
            }
        )*
    };
}

ranges!(Range<usize>, RangeInclusive<usize>, RangeFrom<usize>, RangeTo<usize>, RangeFull);

impl<'h, T: Persist<'h>> Default for PVec<'h, T> {
    fn default() -> Self {
        PVec::new()
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PVec<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'h, T: Persist<'h> + PartialEq> PartialEq for PVec<'h, T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

macro_rules! equal {
    ($([$($size:ident)?] $ty:ty),* $(,)?) => {
        $(
            impl<'h, T: Persist<'h> + PartialEq<U>, U $(, const $size: usize)?> PartialEq<$ty> for PVec<'h, T> {
                fn eq(&self, other: &$ty) -> bool {
                    self.as_slice() == &other[..]
                }
            }
        )*
    };
}

equal!([] [U], [] &[U], [] Vec<U>, [N] [U; N], [N] &[U; N]);

impl<'h, T: Persist<'h> + Eq> Eq for PVec<'h, T> {}

impl<'h, T: Persist<'h>> AsRef<[T]> for PVec<'h, T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<'h, T: Persist<'h> + PartialOrd> PartialOrd for PVec<'h, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.as_slice().partial_cmp(other.as_slice())
    }
}

impl<'h, T: Persist<'h> + Ord> Ord for PVec<'h, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl<'h, T: Persist<'h> + Hash> Hash for PVec<'h, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}
