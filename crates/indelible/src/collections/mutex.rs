//! Locks for threads that share an object.
//!
//! Invariant of both: only code that holds the lock, or that owns or exclusively borrows the lock
//! value, refers to the protected value. It has a block of its own, so that checking the lock does
//! not touch the value.

#![allow(unsafe_code)]

use super::boxed::PBox;
use super::fields::{Field, fields};
use super::into_persist::IntoPersist;
use super::layout::Layout;
use super::lock_word::{acquire, exclusive, release_exclusive, release_shared, shared, try_acquire};
use super::persist::{Bounds, Persist};
use super::place::{HeapRef, Inside, lent, verify};
use crate::error::Result;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU64;

macro_rules! lock {
    ($(#[$doc:meta])* $name:ident, $word:literal, $sync:path) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name<'h, T: Persist<'h>> {
            word: AtomicU64,
            value: PBox<'h, T>,
            /// Threads that share the lock may store a value, so `T` is invariant.
            of: PhantomData<fn(&'h T) -> &'h T>,
        }

        // SAFETY: the value goes where the lock goes.
        unsafe impl<'h, T: Persist<'h> + Send> Send for $name<'h, T> {}
        // SAFETY: the invariant.
        unsafe impl<'h, T: Persist<'h> + Send + $sync> Sync for $name<'h, T> {}

        impl<'h, T: Persist<'h>> $name<'h, T> {
            #[allow(dead_code)]
            pub(super) const FIELDS: &'static [Field] =
                fields!($name<'h, T> { word: AtomicU64, value: PBox<'h, T> });

            /// A free lock, with `value` in a block of `heap`.
            ///
            /// # Panics
            /// If the heap is full; for memory of another heap.
            #[must_use]
            pub fn new_in(value: impl IntoPersist<'h, T>, heap: HeapRef<'h>) -> Self {
                $name { word: AtomicU64::new(0), value: PBox::new_in(value, heap), of: PhantomData }
            }

            /// As [`new_in`](Self::new_in).
            ///
            /// # Errors
            /// `HeapFull`.
            ///
            /// # Panics
            /// For memory of another heap.
            pub fn try_new_in(value: impl IntoPersist<'h, T>, heap: HeapRef<'h>) -> Result<Self> {
                Ok($name { word: AtomicU64::new(0), value: PBox::try_new_in(value, heap)?, of: PhantomData })
            }

            /// The value of an exclusively borrowed lock.
            #[must_use]
            pub fn get_mut(&mut self) -> &mut T {
                &mut self.value
            }

            /// Returns the value.
            #[must_use]
            pub fn into_inner(self) -> T {
                PBox::into_inner(self.value)
            }

            fn enter(&self) -> Inside<'h> {
                // SAFETY: the lock's word, in its value's object, if any.
                unsafe { lent(&raw const self.word, 1) };
                PBox::heap(&self.value).enter()
            }

            fn value(&self) -> *mut T {
                let at = self.value.place();
                // SAFETY: the box's; no other thread changes it while this thread has the lock.
                unsafe { verify(at) };
                at
            }
        }

        impl<'h, T: Persist<'h>> fmt::Debug for $name<'h, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }

        // SAFETY: any word will do; the box is checked (1).
        unsafe impl<'h, T: Persist<'h>> Persist<'h> for $name<'h, T> {
            const ANY: bool = false;

            #[inline]
            unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
                // SAFETY: a field of the caller's value; unchanged while it is shared.
                unsafe { PBox::check(&raw const (*at).value, bounds) }
            }

            fn describe(layout: &mut Layout) {
                layout.word($word);
                T::describe(layout);
            }

            fn type_name(out: &mut String) {
                out.push_str(concat!($word, "<"));
                T::type_name(out);
                out.push('>');
            }
        }
    };
}

lock! {
    /// A lock for threads that share an object, as std's `Mutex`, without poisoning.
    ///
    /// A lock held at the process's death or the object's detach is free afterwards.
    /// [`Heap::psync_cut`](crate::Heap::psync_cut) waits until no thread has a lock of the object,
    /// so that critical sections are durable as a whole.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # pool.create("o", 1 << 20)?;
    /// # let mut heap = indelible::Heap::format(pool.attach("o")?)?;
    /// use indelible::collections::{PHashMap, PMutex, PString};
    ///
    /// type Words<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;
    ///
    /// heap.root_or_insert_with::<Words, _>("words", |heap| PMutex::new_in(PHashMap::new(), heap))?;
    /// let words = heap.root_ref::<Words>("words")?;
    /// std::thread::scope(|scope| {
    ///     for _ in 0..4 {
    ///         scope.spawn(|| *words.lock().entry("word").or_insert(0) += 1);
    ///     }
    /// });
    /// heap.psync_cut()?;
    /// assert_eq!(words.lock()["word"], 4);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    PMutex, "PMutex", Send
}

lock! {
    /// A lock for many readers or one writer, as std's `RwLock`, with the rules of [`PMutex`].
    /// Readers do not wait for waiting writers.
    PRwLock, "PRwLock", Sync
}

impl<'h, T: Persist<'h>> PMutex<'h, T> {
    /// Waits for the lock.
    ///
    /// # Panics
    /// In an object attached for reading, and if the value is damaged.
    pub fn lock(&self) -> PMutexGuard<'_, 'h, T> {
        let inside = self.enter();
        acquire(&self.word, inside.attachment(), exclusive);
        PMutexGuard(Exclusive::new(&self.word, || self.value(), inside))
    }

    /// The lock, if it is free.
    ///
    /// # Panics
    /// As for [`lock`](PMutex::lock).
    pub fn try_lock(&self) -> Option<PMutexGuard<'_, 'h, T>> {
        let inside = self.enter();
        try_acquire(&self.word, inside.attachment(), exclusive)
            .then(|| PMutexGuard(Exclusive::new(&self.word, || self.value(), inside)))
    }
}

impl<'h, T: Persist<'h>> PRwLock<'h, T> {
    /// Waits until no thread stores, and shares the lock.
    ///
    /// # Panics
    /// In an object attached for reading, and if the value is damaged.
    pub fn read(&self) -> PReadGuard<'_, 'h, T> {
        let inside = self.enter();
        acquire(&self.word, inside.attachment(), shared);
        self.reading(inside)
    }

    /// Shares the lock, if no thread stores.
    ///
    /// # Panics
    /// As for [`read`](PRwLock::read).
    pub fn try_read(&self) -> Option<PReadGuard<'_, 'h, T>> {
        let inside = self.enter();
        try_acquire(&self.word, inside.attachment(), shared).then(|| self.reading(inside))
    }

    fn reading<'a>(&'a self, inside: Inside<'h>) -> PReadGuard<'a, 'h, T> {
        let mut guard = PReadGuard { word: &self.word, value: std::ptr::null(), inside, of: PhantomData };
        guard.value = self.value();
        guard
    }

    /// Waits until no other thread has the lock.
    ///
    /// # Panics
    /// As for [`read`](PRwLock::read).
    pub fn write(&self) -> PWriteGuard<'_, 'h, T> {
        let inside = self.enter();
        acquire(&self.word, inside.attachment(), exclusive);
        PWriteGuard(Exclusive::new(&self.word, || self.value(), inside))
    }

    /// The lock, if no other thread has it.
    ///
    /// # Panics
    /// As for [`read`](PRwLock::read).
    pub fn try_write(&self) -> Option<PWriteGuard<'_, 'h, T>> {
        let inside = self.enter();
        try_acquire(&self.word, inside.attachment(), exclusive)
            .then(|| PWriteGuard(Exclusive::new(&self.word, || self.value(), inside)))
    }
}

struct Exclusive<'a, 'h, T> {
    word: &'a AtomicU64,
    value: *mut T,
    _inside: Inside<'h>,
    of: PhantomData<&'a mut T>,
}

impl<'a, 'h, T> Exclusive<'a, 'h, T> {
    fn new(word: &'a AtomicU64, value: impl FnOnce() -> *mut T, inside: Inside<'h>) -> Self {
        let mut guard = Exclusive { word, value: std::ptr::null_mut(), _inside: inside, of: PhantomData };
        guard.value = value();
        guard
    }
}

impl<T> Drop for Exclusive<'_, '_, T> {
    fn drop(&mut self) {
        release_exclusive(self.word);
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<'a, 'h, T>(Exclusive<'a, 'h, T>);

        // SAFETY: as for a reference to the value.
        unsafe impl<T: Sync> Sync for $name<'_, '_, T> {}

        impl<T> Deref for $name<'_, '_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                // SAFETY: this thread has the lock.
                unsafe { &*self.0.value }
            }
        }

        impl<T> DerefMut for $name<'_, '_, T> {
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: this thread alone has the lock.
                unsafe {
                    lent(self.0.value, 1);
                    &mut *self.0.value
                }
            }
        }
    };
}

guard! {
    /// The value of a [`PMutex`]; dropping releases the lock.
    PMutexGuard
}
guard! {
    /// The value of a [`PRwLock`], for storing.
    PWriteGuard
}

/// The value of a [`PRwLock`], for reading.
pub struct PReadGuard<'a, 'h, T> {
    word: &'a AtomicU64,
    value: *const T,
    inside: Inside<'h>,
    of: PhantomData<&'a T>,
}

// SAFETY: as for a reference to the value.
unsafe impl<T: Sync> Sync for PReadGuard<'_, '_, T> {}

impl<T> Deref for PReadGuard<'_, '_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread shares the lock.
        unsafe { &*self.value }
    }
}

impl<T> Drop for PReadGuard<'_, '_, T> {
    fn drop(&mut self) {
        release_shared(self.word, self.inside.attachment());
    }
}
