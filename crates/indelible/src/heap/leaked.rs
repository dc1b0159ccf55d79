//! Values that are reused, never freed: references stay valid without counts.
//!
//! Invariant of [`Slot`]: (1) its pointer is null or came from a `&'static T`.

#![allow(unsafe_code)]

use crate::sys::total::{AtomicPtr, Ordering};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

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

/// Without a lock, which a forked child might find held for ever: a thread has the list for itself
/// while it uses it, and another one begins a second list.
pub(super) struct Spare<T: 'static>(std::sync::atomic::AtomicPtr<List<T>>);

struct List<T: 'static>(Vec<&'static T>);

impl<T> Spare<T> {
    pub(super) const fn new() -> Self {
        Spare(std::sync::atomic::AtomicPtr::new(ptr::null_mut()))
    }

    fn detach(&self) -> Option<Box<List<T>>> {
        let list = self.0.swap(ptr::null_mut(), Acquire);
        // SAFETY: null, or from `give_back`, and no other thread has it from here on.
        (!list.is_null()).then(|| unsafe { Box::from_raw(list) })
    }

    fn give_back(&self, list: Box<List<T>>) {
        let mut list = Box::into_raw(list);
        while self.0.compare_exchange(ptr::null_mut(), list, Release, Relaxed).is_err() {
            // SAFETY: not given back yet.
            let mut all = unsafe { Box::from_raw(list) };
            all.0.extend(self.detach().into_iter().flat_map(|other| other.0));
            list = Box::into_raw(all);
        }
    }

    pub(super) fn take(&self, make: impl FnOnce() -> T) -> &'static T {
        let spare = self.detach().and_then(|mut list| {
            let spare = list.0.pop();
            self.give_back(list);
            spare
        });
        spare.unwrap_or_else(|| Box::leak(Box::new(make())))
    }

    pub(super) fn give(&self, thing: &'static T) {
        let mut list = self.detach().unwrap_or_else(|| Box::new(List(Vec::new())));
        list.0.push(thing);
        self.give_back(list);
    }
}
