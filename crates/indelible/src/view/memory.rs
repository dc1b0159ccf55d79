//! Values in the objects of an attached view.
//!
//! Invariants:
//! 1. An object of an attached view stays attached, at its addresses, as long as the
//!    [`AttachedView`] is not borrowed exclusively: faults end no attachment, and the registry of
//!    attachments refuses to end one that a view has pinned.
//! 2. References into objects borrow the view: shared ones for loads, exclusive ones for stores.
//!    Code that stores through raw pointers promises it.
//! 3. If a view's contexts are those of threads, references borrow a [`Within`], which borrows the
//!    view: as long as it lives its thread has the pages open, as far as its contexts allow it.

#![allow(unsafe_code)]

use super::attached::{AttachedView, Inner, SlotMemory};
use super::classes::Class;
use super::entry::{Entry, Memory};
use super::switched::Within;
use crate::error::{Cause, Result, ViewError};
use crate::plain::{Plain, frozen, placed};
use crate::raw::{self, Pinned};
use std::ptr::NonNull;

const USE: &str = "use a slot of the view";

impl AttachedView {
    /// The value at the start of a slot's object, attached if need be.
    ///
    /// # Errors
    /// As for [`bring`](AttachedView::bring). `BadSize`: the object is smaller than a `T`.
    pub fn get<T: Plain>(&self, slot: usize) -> Result<&T> {
        const { frozen::<T>() };
        let at = self.inner.place::<T>(slot)?;
        // SAFETY: large enough, page-aligned, every bit pattern is a T; mapped and not stored to
        // while the view is shared (1, 2).
        Ok(unsafe { at.as_ref() })
    }

    /// The value at the start of a slot's object, for storing.
    ///
    /// # Errors
    /// As for [`get`](AttachedView::get). `ReadOnly`: the slot, or the object, allows only loads.
    /// `Denied`: no security context allows stores.
    pub fn get_mut<T: Plain>(&mut self, slot: usize) -> Result<&mut T> {
        let mut at = self.inner.place::<T>(slot)?;
        self.inner.expect_writable(slot, size_of::<T>())?;
        // SAFETY: as for `get`, and borrowed exclusively.
        Ok(unsafe { at.as_mut() })
    }

    /// The bytes of a slot's object.
    ///
    /// # Errors
    /// As for [`bring`](AttachedView::bring).
    pub fn bytes(&self, slot: usize) -> Result<&[u8]> {
        let (base, len) = self.inner.range(slot)?;
        // SAFETY: mapped and not stored to while the view is shared (1, 2).
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), len) })
    }

    /// The bytes of a slot's object, for storing.
    ///
    /// # Errors
    /// As for [`get_mut`](AttachedView::get_mut).
    pub fn bytes_mut(&mut self, slot: usize) -> Result<&mut [u8]> {
        let (base, len) = self.inner.range(slot)?;
        self.inner.expect_writable(slot, len)?;
        // SAFETY: as for `bytes`, and borrowed exclusively.
        Ok(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), len) })
    }

    /// Makes all stores to the view's objects durable, atomically.
    ///
    /// # Errors
    /// As for [`Object::psync`](crate::Object::psync), naming every object of the step.
    pub fn psync(&mut self) -> Result<()> {
        self.inner.psync()
    }

    /// Whether a slot's object is attached.
    #[must_use]
    pub fn is_attached(&self, slot: usize) -> bool {
        let memory = self.slots().into_iter().find(|state| state.of.slot == slot).map(|state| state.memory);
        matches!(memory, Some(SlotMemory::Reading | SlotMemory::Writing))
    }
}

impl Within<'_> {
    /// The value at the start of a slot's object, attached if need be.
    ///
    /// # Errors
    /// As for [`AttachedView::get`]. `Denied`: none of the thread's contexts allows loads.
    pub fn get<T: Plain>(&self, slot: usize) -> Result<&T> {
        const { frozen::<T>() };
        self.expect_loads(slot)?;
        let at = self.inner().place::<T>(slot)?;
        // SAFETY: as for a view's; this thread has the pages open as long as the reference lives
        // (3).
        Ok(unsafe { at.as_ref() })
    }

    /// The value at the start of a slot's object, for storing.
    ///
    /// # Errors
    /// As for [`AttachedView::get_mut`]. `Denied`: none of the thread's contexts allows stores.
    pub fn get_mut<T: Plain>(&mut self, slot: usize) -> Result<&mut T> {
        self.expect_stores(slot)?;
        let mut at = self.inner().place::<T>(slot)?;
        self.inner().expect_writable(slot, size_of::<T>())?;
        // SAFETY: as for `get`, and the view is borrowed exclusively.
        Ok(unsafe { at.as_mut() })
    }

    /// The bytes of a slot's object.
    ///
    /// # Errors
    /// As for [`get`](Within::get).
    pub fn bytes(&self, slot: usize) -> Result<&[u8]> {
        self.expect_loads(slot)?;
        let (base, len) = self.inner().range(slot)?;
        // SAFETY: as for `get`.
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), len) })
    }

    /// The bytes of a slot's object, for storing.
    ///
    /// # Errors
    /// As for [`get_mut`](Within::get_mut).
    pub fn bytes_mut(&mut self, slot: usize) -> Result<&mut [u8]> {
        self.expect_stores(slot)?;
        let (base, len) = self.inner().range(slot)?;
        self.inner().expect_writable(slot, len)?;
        // SAFETY: as for `get_mut`.
        Ok(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), len) })
    }
}

impl Entry {
    pub(super) fn close(&self, object: &Pinned) -> Result<()> {
        match &self.class {
            Class::Everybody => Ok(()),
            // SAFETY: references to its bytes are a `Within`'s (3).
            Class::Of(domain) => unsafe { object.close_in(domain) },
            Class::None(why) => Err(why.clone()),
        }
    }
}

impl Inner {
    pub(super) fn psync(&self) -> Result<()> {
        let state = self.live_state("psync")?;
        let written = state.entries.values().filter_map(|entry| match &entry.memory {
            Memory::Object { object, .. } if object.is_writable() => {
                Some(std::ptr::with_exposed_provenance(object.base()))
            }
            _ => None,
        });
        let written: Vec<*const u8> = written.collect();
        // SAFETY: references into the objects borrow the view, which is borrowed exclusively; other
        // stores as in (2).
        unsafe { raw::psync_all(&written) }
    }

    pub(super) fn range(&self, slot: usize) -> Result<(NonNull<u8>, usize)> {
        self.with_slot(slot, |entry, _| {
            let Memory::Object { object, .. } = &entry.memory else {
                return Err(self.error(USE, Cause::Detached));
            };
            let base = NonNull::new(std::ptr::with_exposed_provenance_mut(object.base()));
            Ok((base.unwrap_or(NonNull::dangling()), object.len()))
        })
    }

    fn place<T: Plain>(&self, slot: usize) -> Result<NonNull<T>> {
        const { placed::<T>() };
        let (base, size) = self.range(slot)?;
        match size_of::<T>() <= size {
            true => Ok(base.cast()),
            false => {
                let needed = size_of::<T>();
                Err(self.error(USE, ViewError::TooSmall { slot, size, needed }))
            }
        }
    }

    fn expect_writable(&self, slot: usize, len: usize) -> Result<()> {
        self.with_slot(slot, |entry, contexts| match &entry.memory {
            Memory::Object { object, .. } if object.is_writable() => {
                object.stored(0..len);
                Ok(())
            }
            _ => Err(self.no_stores(entry, contexts)),
        })
    }
}
