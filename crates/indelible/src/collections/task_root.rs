//! Roots that tasks keep across an `.await`.
//!
//! The compiler proves for every lifetime at once that a task may go to another thread. It cannot
//! for a `&PMutex<'h, T>`, which is `Sync` where `T` is `Persist<'h>`. A [`TaskRoot`] has no such
//! condition.
//!
//! Invariant: it was made of a `&'h T` whose `T` is `Sync`.

#![allow(unsafe_code)]

use super::persist::Persist;
use crate::error::Result;
use crate::heap::{Heap, ReadHeap};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// A reference to a root that a task may keep across an `.await`: see [`Heap::root_in_task`].
pub struct TaskRoot<'h, T> {
    root: *const T,
    /// Exactly this `T`, lifetimes included: another may not be `Sync`.
    of: PhantomData<fn(&'h T) -> &'h T>,
}

// SAFETY: as a reference to a `Sync` value (the invariant).
unsafe impl<T> Send for TaskRoot<'_, T> {}
// SAFETY: as a reference to a `Sync` value (the invariant).
unsafe impl<T> Sync for TaskRoot<'_, T> {}

impl<'h, T: Sync> TaskRoot<'h, T> {
    fn new(root: &'h T) -> Self {
        TaskRoot { root, of: PhantomData }
    }
}

impl<T> Clone for TaskRoot<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for TaskRoot<'_, T> {}

impl<T> Deref for TaskRoot<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the invariant.
        unsafe { &*self.root }
    }
}

impl<T: fmt::Debug> fmt::Debug for TaskRoot<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Heap {
    /// As [`root_ref`](Heap::root_ref), for a task that keeps the root across an `.await`.
    ///
    /// ```
    /// use indelible::Heap;
    /// use indelible::collections::{PHashMap, PMutex, PString};
    /// use std::sync::Arc;
    ///
    /// type Sessions<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;
    ///
    /// async fn visits(heap: Arc<Heap>, user: String) -> indelible::Result<u64> {
    ///     let sessions = heap.root_in_task::<Sessions>("sessions")?;
    ///     *sessions.lock().entry(&*user).or_insert(0) += 1; // the lock ends here
    ///     heap.commit().await?;
    ///     Ok(sessions.lock()[&*user])
    /// }
    ///
    /// fn spawn(task: impl Future + Send + 'static) { /* as tokio::spawn */ }
    ///
    /// fn serve(heap: &Arc<Heap>) {
    ///     spawn(visits(heap.clone(), "alice".to_owned()));
    /// }
    /// ```
    ///
    /// With [`root_ref`](Heap::root_ref) it does not compile; the error is "implementation of
    /// `Persist` is not general enough":
    ///
    /// ```compile_fail
    /// # use indelible::Heap;
    /// # use indelible::collections::{PHashMap, PMutex, PString};
    /// # use std::sync::Arc;
    /// # type Sessions<'h> = PMutex<'h, PHashMap<'h, PString<'h>, u64>>;
    /// # async fn visits(heap: Arc<Heap>, user: String) -> indelible::Result<u64> {
    /// let sessions = heap.root_ref::<Sessions>("sessions")?;
    /// #     *sessions.lock().entry(&*user).or_insert(0) += 1;
    /// #     heap.commit().await?;
    /// #     Ok(sessions.lock()[&*user])
    /// # }
    /// # fn spawn(task: impl Future + Send + 'static) {}
    /// # fn serve(heap: &Arc<Heap>) { spawn(visits(heap.clone(), "alice".to_owned())); }
    /// ```
    ///
    /// A guard of a lock never goes to another thread: drop it before the `.await`.
    ///
    /// # Errors
    /// As for [`root_ref`](Heap::root_ref).
    pub fn root_in_task<'h, T: Persist<'h> + Sync>(&'h self, name: &str) -> Result<TaskRoot<'h, T>> {
        Ok(TaskRoot::new(self.root_ref(name)?))
    }
}

impl ReadHeap {
    /// As [`root_ref`](ReadHeap::root_ref), for a task that keeps the root across an `.await`: see
    /// [`Heap::root_in_task`].
    ///
    /// # Errors
    /// As for [`root_ref`](ReadHeap::root_ref).
    pub fn root_in_task<'h, T: Persist<'h> + Sync>(&'h self, name: &str) -> Result<TaskRoot<'h, T>> {
        Ok(TaskRoot::new(self.root_ref(name)?))
    }
}
