#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::persist::Persist;
use super::place::lent;
use super::vec_deque::PVecDeque;
use super::vec_iter::{PIter, PIterMut};
use std::fmt;
use std::iter::{Chain, FusedIterator};
use std::ops::{Index, IndexMut};

/// References to elements, in order, each checked at its turn.
pub struct DequeIter<'a, T> {
    rest: Chain<PIter<'a, T>, PIter<'a, T>>,
}

/// Mutable references to elements.
pub struct DequeIterMut<'a, T> {
    rest: Chain<PIterMut<'a, T>, PIterMut<'a, T>>,
}

/// The elements of a consumed queue.
pub struct DequeIntoIter<'h, T: Persist<'h>> {
    rest: PVecDeque<'h, T>,
}

impl<'h, T: Persist<'h>> PVecDeque<'h, T> {
    /// The elements, in order.
    pub fn iter(&self) -> DequeIter<'_, T> {
        // SAFETY: our elements.
        DequeIter::new(self.parts(0..self.len()).map(|part| unsafe { PIter::over(part) }))
    }

    /// Mutable elements.
    pub fn iter_mut(&mut self) -> DequeIterMut<'_, T> {
        DequeIterMut::new(self.parts(0..self.len()).map(|part| {
            // SAFETY: our elements, marked at once, and borrowed exclusively.
            unsafe {
                lent(part.start, (part.end.addr() - part.start.addr()) / size_of::<T>());
                PIterMut::over(part)
            }
        }))
    }
}

macro_rules! iterator {
    ($name:ident, $parts:ident, $reference:ty) => {
        impl<'a, 'h: 'a, T: Persist<'h>> $name<'a, T> {
            pub(super) fn new([one, two]: [$parts<'a, T>; 2]) -> Self {
                $name { rest: one.chain(two) }
            }
        }

        impl<'a, 'h: 'a, T: Persist<'h>> Iterator for $name<'a, T> {
            type Item = $reference;

            #[inline]
            fn next(&mut self) -> Option<$reference> {
                self.rest.next()
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.rest.size_hint()
            }

            #[inline]
            fn fold<B, F: FnMut(B, $reference) -> B>(self, init: B, f: F) -> B {
                self.rest.fold(init, f)
            }
        }

        impl<'a, 'h: 'a, T: Persist<'h>> DoubleEndedIterator for $name<'a, T> {
            #[inline]
            fn next_back(&mut self) -> Option<$reference> {
                self.rest.next_back()
            }
        }

        impl<'a, 'h: 'a, T: Persist<'h>> ExactSizeIterator for $name<'a, T> {}
        impl<'a, 'h: 'a, T: Persist<'h>> FusedIterator for $name<'a, T> {}
    };
}

iterator!(DequeIter, PIter, &'a T);
iterator!(DequeIterMut, PIterMut, &'a mut T);

impl<'h, T: Persist<'h>> Iterator for DequeIntoIter<'h, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.rest.pop_front()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rest.len(), Some(self.rest.len()))
    }
}

impl<'h, T: Persist<'h>> DoubleEndedIterator for DequeIntoIter<'h, T> {
    fn next_back(&mut self) -> Option<T> {
        self.rest.pop_back()
    }
}

impl<'h, T: Persist<'h>> ExactSizeIterator for DequeIntoIter<'h, T> {}
impl<'h, T: Persist<'h>> FusedIterator for DequeIntoIter<'h, T> {}

impl<'h, T: Persist<'h>> IntoIterator for PVecDeque<'h, T> {
    type Item = T;
    type IntoIter = DequeIntoIter<'h, T>;

    fn into_iter(self) -> DequeIntoIter<'h, T> {
        DequeIntoIter { rest: self }
    }
}

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a PVecDeque<'h, T> {
    type Item = &'a T;
    type IntoIter = DequeIter<'a, T>;

    fn into_iter(self) -> DequeIter<'a, T> {
        self.iter()
    }
}

impl<'a, 'h: 'a, T: Persist<'h>> IntoIterator for &'a mut PVecDeque<'h, T> {
    type Item = &'a mut T;
    type IntoIter = DequeIterMut<'a, T>;

    fn into_iter(self) -> DequeIterMut<'a, T> {
        self.iter_mut()
    }
}

/// A panic leaves the elements added before.
impl<'h, T: Persist<'h>, V: IntoPersist<'h, T>> Extend<V> for PVecDeque<'h, T> {
    fn extend<I: IntoIterator<Item = V>>(&mut self, values: I) {
        let values = values.into_iter();
        self.reserve(values.size_hint().0);
        values.for_each(|value| self.push_back(value));
    }
}

impl<'h, T: Persist<'h>> Index<usize> for PVecDeque<'h, T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        match self.get(index) {
            Some(value) => value,
            None => panic!("index {index} of {} elements", self.len()),
        }
    }
}

impl<'h, T: Persist<'h>> IndexMut<usize> for PVecDeque<'h, T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        let len = self.len();
        match self.get_mut(index) {
            Some(value) => value,
            None => panic!("index {index} of {len} elements"),
        }
    }
}

impl<'h, T: Persist<'h>> Default for PVecDeque<'h, T> {
    fn default() -> Self {
        PVecDeque::new()
    }
}

impl<'h, T: Persist<'h> + Clone> Clone for PVecDeque<'h, T> {
    fn clone(&self) -> Self {
        if self.is_empty() {
            return PVecDeque::new();
        }
        let mut copy = PVecDeque::new_in(self.heap());
        copy.extend(self.iter().cloned());
        copy
    }
}

impl<'h, T: Persist<'h> + fmt::Debug> fmt::Debug for PVecDeque<'h, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<'h, T: Persist<'h> + PartialEq> PartialEq for PVecDeque<'h, T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other)
    }
}

impl<'h, T: Persist<'h> + Eq> Eq for PVecDeque<'h, T> {}
