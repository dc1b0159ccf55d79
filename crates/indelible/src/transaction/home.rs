#![allow(unsafe_code)]

use super::attached::Attached;
use super::pointer::TxPtr;
use crate::error::{Cause, Error, HeapError, Limit, Result};
use crate::heap::words::WordHeap;
use crate::plain::Plain;
use std::sync::atomic::AtomicUsize;

/// Objects that a transaction can use: [`TxObject`](crate::TxObject)s and
/// [`TxHeap`](crate::TxHeap)s.
pub trait Transactional: private::Part {}

pub(super) mod private {
    /// Sealed: a transaction relies on its answers.
    pub trait Part {
        #[doc(hidden)]
        fn attached(&self) -> &super::Attached;

        #[doc(hidden)]
        fn home(&self) -> Option<&super::Home> {
            None
        }
    }
}

pub struct Home {
    pub(super) attached: Attached,
    pub(super) words: WordHeap,
    pub(super) value: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Full {
    slot: u64,
    needed: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Stuck {
    slot: u64,
    limit: Limit,
}

impl Full {
    pub(super) fn grow(self, objects: &[&dyn Transactional]) -> Result<Option<Stuck>, Cause> {
        let homes = objects.iter().filter_map(|object| object.home());
        self.grow_of(homes)
    }

    pub(super) fn grow_of<'h>(
        self,
        mut homes: impl Iterator<Item = &'h Home>,
    ) -> Result<Option<Stuck>, Cause> {
        let Some(home) = homes.find(|home| home.attached.slot() == self.slot) else { return Ok(None) };
        let limit = home.grow(self.needed)?;
        Ok(limit.map(|limit| Stuck { slot: self.slot, limit }))
    }
}

pub(super) enum After<R> {
    Done(Result<R, Cause>),
    Again,
    Grow(Full),
}

impl Home {
    pub(super) fn after<R>(
        &self,
        done: Result<R, Cause>,
        (stuck, alone): (&[Stuck], bool),
        limit: &mut Option<Limit>,
    ) -> After<R> {
        let (needed, largest) = match done {
            Err(Cause::Heap(HeapError::Full { needed, largest })) => (needed, largest),
            done => return After::Done(done),
        };
        let met = || stuck.iter().find(|stuck| stuck.slot == self.attached.slot());
        if let Some(limit) = limit.take().or_else(|| met().map(|met| met.limit.clone())) {
            return After::Done(Err(HeapError::Stuck { needed, largest, limit }.into()));
        }
        if !alone {
            return After::Grow(Full { slot: self.attached.slot(), needed });
        }
        *limit = self.grow_alone(needed);
        After::Again
    }
}

/// Fails to compile unless a `T` has cells alone.
pub(super) const fn placed_in_block<T: Plain>() {
    let () = T::LAYOUT;
    assert!(
        T::CELLS,
        "a value in a transactional heap consists of TxCells alone: wrap each of its fields in one"
    );
    assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096, "no block can be of such a type");
}

impl Home {
    pub(crate) fn new(attached: Attached) -> Home {
        let words = WordHeap::new(attached.own(), attached.size());
        Home { attached, words, value: AtomicUsize::new(0) }
    }

    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    pub(crate) fn end(&mut self) -> Result<(), Cause> {
        self.attached.end()
    }

    #[inline]
    pub(super) fn value<T: Plain>(&self, pointer: TxPtr<T>) -> Result<&T> {
        const { placed_in_block::<T>() };
        let offset = pointer.address().wrapping_sub(self.attached.own() as u64);
        let last = self.attached.size().checked_sub(size_of::<T>());
        let fits = last.is_some_and(|last| offset <= last as u64);
        if !fits || !offset.is_multiple_of(align_of::<T>() as u64) {
            return Err(self.stray(offset));
        }
        // SAFETY: in the view, which is there as long as it is borrowed (2); aligned; cells alone,
        // that transactions alone access (1, 3).
        Ok(unsafe { &*self.attached.base().add(offset as usize).cast::<T>() })
    }

    #[cold]
    fn stray(&self, offset: u64) -> Error {
        let what = "a pointer leads here, where no value of its type fits";
        self.attached.error("follow a pointer in", HeapError::Damaged { offset, what })
    }
}
