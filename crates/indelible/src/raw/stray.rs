//! Addresses in an object that mean nothing in the next run, by address.

#![allow(unsafe_code)]

use super::registry::{Attachment, find};
use crate::error::{Cause, ErrorKind, Result};
use crate::heap::stray::{Audit, StrayPointer, refused, search};
use std::sync::PoisonError;

/// Such addresses in the object at `address`, in order.
///
/// # Safety
/// No thread detaches the object meanwhile.
pub unsafe fn stray_pointers(address: *const u8) -> Result<Vec<StrayPointer>> {
    find("audit", address.addr())?.stray("audit", Audit::Everything)
}

/// Makes every psync of the object fail with [`StrayPointer`](ErrorKind::StrayPointer), before
/// anything is durable, while it contains such addresses. For debugging.
///
/// # Safety
/// From now on, no thread detaches the object while another one psyncs it.
pub unsafe fn set_audit(address: *const u8, audit: Audit) -> Result<()> {
    let found = find("audit", address.addr())?;
    if found.core().is_none() {
        return Err(found.error("audit", Cause::ForReading));
    }
    found.set_audit(audit);
    Ok(())
}

impl Attachment {
    pub(super) fn audited(&self, operation: &'static str) -> Result<()> {
        let audit = self.audit();
        if audit == Audit::Off {
            return Ok(());
        }
        refused(&self.stray(operation, audit)?).map_err(|cause| self.error(operation, cause))
    }

    fn stray(&self, operation: &'static str, audit: Audit) -> Result<Vec<StrayPointer>> {
        let heap = match self.opened(None) {
            Ok(_) => Some(self.heap.read().unwrap_or_else(PoisonError::into_inner)),
            Err(error) if error.kind() == ErrorKind::NotAHeap => None,
            Err(error) => return Err(error),
        };
        let heap = heap.as_ref().and_then(|heap| heap.as_deref());
        // SAFETY: no thread detaches the object meanwhile, as callers of the two functions above
        // promise.
        let found = unsafe { search(self.base.as_ptr(), self.len(), heap, audit) };
        found.map_err(|cause| self.error(operation, cause))
    }
}
