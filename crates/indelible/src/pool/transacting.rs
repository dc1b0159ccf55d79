//! The pool's transactions. Within one, calls that wait for a medium, or must not be repeated, are
//! refused.

use super::{Class, Inner};
use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{MutexGuard, PoisonError, Weak};

impl Inner {
    pub(crate) fn transactions(&self) -> MutexGuard<'_, HashMap<Class, Weak<dyn Any + Send + Sync>>> {
        self.transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

#[inline]
pub(crate) fn inside_transaction() -> bool {
    INSIDE.get()
}

#[derive(Debug)]
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    #[inline]
    pub(crate) fn begin() -> Inside {
        INSIDE.with(|inside| inside.set(true));
        Inside(PhantomData)
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}
