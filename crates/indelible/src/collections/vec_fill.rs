//! Fills a [`PVec`] with many values: makes room and marks stores for all at once.
//!
//! Invariant of [`Filling`]: the first `len` elements of the vector's block are values, `len` is at
//! most the room, and not less than the vector's own length, which is updated at the end.

#![allow(unsafe_code)]

use super::into_persist::IntoPersist;
use super::persist::{Persist, put};
use super::place::{HeapRef, expect, stored};
use super::vec::PVec;
use crate::error::Result;

struct Filling<'a, 'h, T: Persist<'h>> {
    vec: &'a mut PVec<'h, T>,
    start: *mut T,
    len: usize,
    heap: HeapRef<'h>,
}

impl<'a, 'h, T: Persist<'h>> Filling<'a, 'h, T> {
    #[inline]
    fn new(vec: &'a mut PVec<'h, T>) -> Self {
        Filling { start: vec.start(), len: vec.len(), heap: vec.heap(), vec }
    }

    fn room(&self) -> usize {
        self.vec.capacity() - self.len
    }

    /// # Safety
    /// There is room.
    #[inline]
    unsafe fn put(&mut self, value: impl IntoPersist<'h, T>) -> Result<()> {
        let value = value.into_persist(self.heap)?;
        self.heap.expect_own(&value);
        // SAFETY: in the block, by the caller's promise.
        unsafe { put(self.start.add(self.len), value) };
        self.len += 1;
        Ok(())
    }
}

impl<'h, T: Persist<'h>> Drop for Filling<'_, 'h, T> {
    #[inline]
    fn drop(&mut self) {
        let old = self.vec.len();
        // SAFETY: elements of the block, which were put there.
        unsafe { stored(self.start.add(old), self.len - old) };
        self.vec.set_len(self.len);
    }
}

impl<'h, T: Persist<'h>> PVec<'h, T> {
    fn fill_counted<V: IntoPersist<'h, T>>(
        &mut self,
        values: impl ExactSizeIterator<Item = V>,
    ) -> Result<()> {
        self.try_reserve(values.len())?;
        let mut filling = Filling::new(self);
        // The numbers come first: no value is taken without room.
        for (_, value) in (0..values.len()).zip(values) {
            // SAFETY: room was made for so many.
            unsafe { filling.put(value)? };
        }
        Ok(())
    }

    fn fill<V: IntoPersist<'h, T>>(&mut self, mut values: impl Iterator<Item = V>) -> Result<()> {
        self.try_reserve(values.size_hint().0)?;
        loop {
            let mut filling = Filling::new(self);
            let room = filling.room();
            // SAFETY: as many as there is room for.
            values.by_ref().take(room).try_for_each(|value| unsafe { filling.put(value) })?;
            drop(filling);
            match values.next() {
                Some(value) => self.try_push(value)?,
                None => return Ok(()),
            }
        }
    }

    fn all_or_none(&mut self, fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let len = self.len();
        fill(self).inspect_err(|_| self.truncate(len))
    }

    /// Appends clones of `values`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = indelible::Heap::format(pool.create_attached("o", 1 << 20)?)?;
    /// use indelible::collections::PVec;
    ///
    /// let (log, place) = heap.root_and_heap::<PVec<PVec<u8>>>("log")?;
    /// log.push(&b"one"[..]); // one copy of all bytes
    /// log[0].extend_from_slice(b", two");
    /// log.push(PVec::from_slice_in(b"three", place));
    /// assert_eq!(log[0], b"one, two");
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the heap is full, or a clone has memory of another heap.
    pub fn extend_from_slice(&mut self, values: &[T])
    where
        T: Clone,
    {
        expect(self.fill_counted(values.iter().cloned()));
    }

    /// As [`extend_from_slice`](PVec::extend_from_slice), of values whose copies allocate nothing.
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_extend_from_slice(&mut self, values: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.all_or_none(|vec| vec.fill_counted(values.iter().cloned()))
    }

    /// Truncates to `len`, or appends clones of `value` up to it.
    ///
    /// # Panics
    /// If the heap is full, or a clone has memory of another heap.
    pub fn resize(&mut self, len: usize, value: T)
    where
        T: Clone,
    {
        match len.checked_sub(self.len()) {
            Some(more) => expect(self.fill_counted(std::iter::repeat_n(value, more))),
            None => self.truncate(len),
        }
    }

    /// As [`resize`](PVec::resize), with a value whose copies allocate nothing.
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_resize(&mut self, len: usize, value: T) -> Result<()>
    where
        T: Copy,
    {
        match len.checked_sub(self.len()) {
            Some(more) => self.all_or_none(|vec| vec.fill_counted(std::iter::repeat_n(value, more))),
            None => {
                self.truncate(len);
                Ok(())
            }
        }
    }

    /// Moves the elements from `at` on to a new vector in the same heap.
    ///
    /// # Panics
    /// If the heap is full, or there are fewer elements.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        expect(self.try_split_off(at))
    }

    /// As [`split_off`](PVec::split_off).
    ///
    /// # Errors
    /// `HeapFull`.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn try_split_off(&mut self, at: usize) -> Result<Self> {
        let len = self.len();
        assert!(at <= len, "split at {at} of {len} elements");
        let mut rest = Self::new_in(self.heap());
        if at < len {
            rest.try_reserve(len - at)?;
            // SAFETY: there is room for the elements, which are the other vector's from here on.
            unsafe {
                rest.start().copy_from_nonoverlapping(self.start().add(at), len - at);
                stored(rest.start(), len - at);
            }
            self.set_len(at);
            rest.set_len(len - at);
        }
        Ok(rest)
    }

    /// As [`extend`](Extend::extend).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_extend<V: IntoPersist<'h, T>>(&mut self, values: impl IntoIterator<Item = V>) -> Result<()> {
        self.all_or_none(|vec| vec.fill(values.into_iter()))
    }

    /// A vector of `values`, converted. For a slice, [`from_slice_in`](PVec::from_slice_in) is
    /// faster.
    ///
    /// # Panics
    /// If the heap is full.
    #[must_use]
    pub fn from_in<V: IntoPersist<'h, T>>(values: impl IntoIterator<Item = V>, heap: HeapRef<'h>) -> Self {
        expect(PVec::try_from_in(values, heap))
    }

    /// As [`from_in`](PVec::from_in).
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_from_in<V: IntoPersist<'h, T>>(
        values: impl IntoIterator<Item = V>,
        heap: HeapRef<'h>,
    ) -> Result<Self> {
        let mut vec = PVec::new_in(heap);
        vec.fill(values.into_iter())?;
        Ok(vec)
    }

    /// A vector of clones of `values`.
    ///
    /// # Panics
    /// If the heap is full.
    #[must_use]
    pub fn from_slice_in(values: &[T], heap: HeapRef<'h>) -> Self
    where
        T: Clone,
    {
        let mut vec = PVec::new_in(heap);
        vec.extend_from_slice(values);
        vec
    }

    /// As [`from_slice_in`](PVec::from_slice_in), of values whose copies allocate nothing.
    ///
    /// # Errors
    /// `HeapFull`.
    pub fn try_from_slice_in(values: &[T], heap: HeapRef<'h>) -> Result<Self>
    where
        T: Copy,
    {
        let mut vec = PVec::new_in(heap);
        vec.fill_counted(values.iter().cloned())?;
        Ok(vec)
    }
}

/// A panic leaves the elements added before.
impl<'h, T: Persist<'h>, V: IntoPersist<'h, T>> Extend<V> for PVec<'h, T> {
    fn extend<I: IntoIterator<Item = V>>(&mut self, values: I) {
        expect(self.fill(values.into_iter()));
    }
}

impl<'h, T: Persist<'h> + Clone> Clone for PVec<'h, T> {
    fn clone(&self) -> Self {
        if self.is_empty() {
            return PVec::new();
        }
        PVec::from_slice_in(self.as_slice(), self.heap())
    }
}

fn collect<'h, T: Persist<'h>, V: IntoPersist<'h, T>>(
    values: impl ExactSizeIterator<Item = V>,
    heap: HeapRef<'h>,
) -> Result<PVec<'h, T>> {
    let mut vec = PVec::new_in(heap);
    vec.fill_counted(values)?;
    Ok(vec)
}

macro_rules! collected {
    ($([$($par:tt)*] $ty:ty, $values:ident => $iter:expr);* $(;)?) => {
        $(
            impl<'h, T: Persist<'h>, $($par)*> IntoPersist<'h, PVec<'h, T>> for $ty {
                #[inline]
                fn into_persist(self, heap: HeapRef<'h>) -> Result<PVec<'h, T>> {
                    let $values = self;
                    collect($iter, heap)
                }
            }
        )*
    };
}

collected! {
    [V: IntoPersist<'h, T>] Vec<V>, values => values.into_iter();
    [V: IntoPersist<'h, T>, const N: usize] [V; N], values => values.into_iter();
    [V: IntoPersist<'h, T> + Clone] &[V], values => values.iter().cloned();
    [V: IntoPersist<'h, T> + Clone] &Vec<V>, values => values.iter().cloned();
    [V: IntoPersist<'h, T> + Clone, const N: usize] &[V; N], values => values.iter().cloned();
}
