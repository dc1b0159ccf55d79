//! Statics that each process has for itself.
//!
//! Invariant: a cell is null, or points to an entry that was leaked and is never freed.

#![allow(unsafe_code)]

use super::fork;
use std::convert::Infallible;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{RwLock, TryLockError};

/// A static value that each process has for itself. A forked child makes its own, because a thread
/// that it lacks may hold locks of its parent's value for ever.
///
/// ```
/// use indelible::PerProcess;
/// use std::sync::Mutex;
///
/// static NAMES: PerProcess<Mutex<Vec<String>>> = PerProcess::new();
/// NAMES.get().lock().unwrap().push("alice".into()); // a forked child's list begins empty
/// ```
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    cell: AtomicPtr<Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: T,
}

impl<T: Send + Sync + 'static> PerProcess<T> {
    /// Without a value.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> PerProcess<T> {
        PerProcess { cell: AtomicPtr::new(ptr::null_mut()) }
    }

    /// This process's value, which begins as the default.
    pub fn get(&self) -> &'static T
    where
        T: Default,
    {
        self.get_or(|_| T::default())
    }

    /// This process's value. The first call makes it, perhaps of its parent's value, whose locks
    /// may stay held for ever. Of threads that make it at once one wins.
    pub fn get_or(&self, make: impl FnOnce(Option<&'static T>) -> T) -> &'static T {
        let Ok(value) = self.get_or_try(|parent| Ok::<_, Infallible>(make(parent)));
        value
    }

    pub(crate) fn get_or_try<E>(
        &self,
        make: impl FnOnce(Option<&'static T>) -> Result<T, E>,
    ) -> Result<&'static T, E> {
        let old = self.cell.load(Ordering::Acquire);
        // SAFETY: null or a leaked entry (invariant).
        let entry: Option<&'static Entry<T>> = unsafe { old.as_ref() };
        let parent = match entry {
            Some(entry) if !fork::is_stale(entry.generation) => return Ok(&entry.value),
            parent => parent.map(|entry| &entry.value),
        };
        // Without handlers a child takes its parent's value for its own, as if it had not forked.
        let _ = fork::install();
        let entry = Entry { generation: fork::generation(), value: make(parent)? };
        let fresh = Box::into_raw(Box::new(entry));
        match self.cell.compare_exchange(old, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `fresh` is leaked from here on (invariant).
            Ok(_) => Ok(unsafe { &(*fresh).value }),
            Err(winner) => {
                // SAFETY: `fresh` came from `Box::into_raw` and was not published.
                drop(unsafe { Box::from_raw(fresh) });
                // SAFETY: the winner published a leaked entry of this process.
                Ok(unsafe { &(*winner).value })
            }
        }
    }
}

impl<T: Clone + Default + Send + Sync + 'static> PerProcess<RwLock<T>> {
    /// As [`get`](Self::get); a child begins with a copy of its parent's value, unless a thread was
    /// changing that at the fork.
    pub(crate) fn inherited(&self) -> &'static RwLock<T> {
        self.get_or(|parent| {
            let copy = parent.and_then(|parent| match parent.try_read() {
                Ok(value) => Some(value.clone()),
                Err(TryLockError::Poisoned(value)) => Some(value.into_inner().clone()),
                Err(TryLockError::WouldBlock) => None,
            });
            RwLock::new(copy.unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fork::is_so_in_a_child;
    use std::sync::PoisonError;

    #[test]
    fn a_child_inherits_a_value_and_no_lock() {
        static NAMES: PerProcess<RwLock<Vec<u32>>> = PerProcess::new();
        let here = || NAMES.inherited().write().unwrap_or_else(PoisonError::into_inner);
        here().push(1);
        let is_so = is_so_in_a_child(|| {
            let inherits = *here() == [1];
            here().push(2);
            inherits && *here() == [1, 2] && is_so_in_a_child(|| *here() == [1, 2])
        });
        assert!(is_so && *here() == [1]);
        let held = here();
        let is_so = is_so_in_a_child(|| here().is_empty());
        drop(held);
        assert!(is_so && *here() == [1]);
    }
}
