//! Pages of an attachment that are closed to all threads but admitted ones
//! (docs/decisions/0068-contexts-of-threads.md).
//!
//! Invariants:
//! 1. The pages are those of one attachment, which is unmapped only after they left their domain
//!    ([`Closed::clear`]).
//! 2. [`Closed::again`] follows each call that maps pages of an attachment anew.

#![allow(unsafe_code)]

use crate::error::{Cause, SecurityError};
use crate::protection::{Domain, Open, ProtectionError, Range};
use crate::sys::mmap::Protection;
use indelible_store::Mutant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Closed(Mutex<Option<Range>>);

pub(super) type Opened = Option<Open>;

impl Closed {
    fn range(&self) -> MutexGuard<'_, Option<Range>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a failure the pages may be open to all threads.
    ///
    /// # Safety
    /// They are those of the attachment, and only threads that have the domain open use references
    /// to its bytes.
    pub(super) unsafe fn set(
        &self,
        domain: &Arc<Domain>,
        (addr, len): (usize, usize),
        most: Protection,
    ) -> Result<(), Cause> {
        let mut range = self.range();
        if range.as_ref().is_some_and(|range| Arc::ptr_eq(range.domain(), domain)) {
            return Ok(());
        }
        *range = None;
        // SAFETY: the caller's promise, and (1).
        let added = unsafe { domain.add(addr, len, most) };
        *range = Some(added.map_err(failed)?);
        Ok(())
    }

    pub(super) fn clear(&self) {
        *self.range() = None;
    }

    /// After an error new pages may be open to all threads until this succeeds.
    pub(super) fn again(&self, len: usize) -> Result<(), Cause> {
        match &mut *self.range() {
            // SAFETY: as when they were closed first.
            Some(range) if !Mutant::NewPagesOpen.is_on() => unsafe { range.reapply(len) }.map_err(failed),
            _ => Ok(()),
        }
    }

    pub(super) fn open(&self, access: Protection) -> Result<Opened, Cause> {
        let domain = self.range().as_ref().map(|range| range.domain().clone());
        domain.map(|domain| domain.open(access)).transpose().map_err(failed)
    }
}

fn failed(error: ProtectionError) -> Cause {
    SecurityError::from(error).into()
}
