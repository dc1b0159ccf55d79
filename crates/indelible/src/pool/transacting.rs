//! Whether a transaction runs on this thread: calls that wait for a medium, or that a second run of its closure would repeat, are refused meanwhile.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether a transaction runs on this thread.
#[inline]
pub(crate) fn inside_transaction() -> bool {
    INSIDE.get()
}

/// One does, until this is dropped. There is one at a time.
#[derive(Debug)]
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    pub(crate) fn begin() -> Inside {
        INSIDE.set(true);
        Inside(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}
