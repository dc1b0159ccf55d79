//! Values that are reused, never freed: references stay valid without counts.
//!
//! Invariant of [`Slot`]: (1) its pointer is null or came from a `&'static T`.

#![allow(unsafe_code)]

use crate::sys::total::{AtomicPtr, Ordering};
use std::ptr;
use std::sync::Mutex;

pub(super) struct Slot<T: 'static>(AtomicPtr<T>);

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline]
    fn reference(pointer: *mut T) -> Option<&'static T> {
        // SAFETY: null or a static reference (1).
        unsafe { pointer.as_ref() }
    }

    fn pointer(value: Option<&'static T>) -> *mut T {
        value.map_or(ptr::null_mut(), |value| ptr::from_ref(value).cast_mut())
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&'static T> {
        Self::reference(self.0.load(Ordering::Acquire))
    }

    /// Ordered behind this thread's earlier `SeqCst` stores: of two threads that each store and
    /// then read the other's slot, one sees the other's store.
    pub(super) fn latest(&self) -> Option<&'static T> {
        Self::reference(self.0.load(Ordering::SeqCst))
    }

    #[inline]
    pub(super) fn is(&self, value: &T) -> bool {
        ptr::eq(self.0.load(Ordering::Relaxed), value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    pub(super) fn set(&self, value: Option<&'static T>) {
        self.0.store(Self::pointer(value), Ordering::Release);
    }

    pub(super) fn take(&self) -> Option<&'static T> {
        Self::reference(self.0.swap(ptr::null_mut(), Ordering::SeqCst))
    }

    pub(super) fn replace(&self, old: Option<&'static T>, value: Option<&'static T>) -> bool {
        let (old, new) = (Self::pointer(old), Self::pointer(value));
        self.0.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

pub(super) struct Spare<T: 'static>(Mutex<Vec<&'static T>>);

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Spare(Mutex::new(Vec::new()))
    }

    pub(super) fn take(&self, make: impl FnOnce() -> T) -> &'static T {
        let spare = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        spare.unwrap_or_else(|| Box::leak(Box::new(make())))
    }

    pub(super) fn give(&self, thing: &'static T) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(thing);
    }
}
