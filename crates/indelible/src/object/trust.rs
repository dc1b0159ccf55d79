//! Whether typed code alone stored an attached object's bytes (docs/decisions/0024-trust.md).
//!
//! Invariants:
//!
//! 1. `Trust::Own` is true of every byte of the shadow: it was blank, or marked in the table, when
//!    it was attached, and its bytes were not lent since.
//! 2. Foreign bytes are not made durable before the mark in the table is gone; the mark does not
//!    come back before verified bytes are durable.

use super::engine::Core;
use super::origin::Trust;
use super::writer::Object;
use crate::error::{Cause, Result, TransactionError};
use crate::pool::inside_transaction;

impl Core {
    pub(super) fn begin_trust(&mut self) -> Result<(), Cause> {
        let writer = self.writer()?;
        if self.tracked.pool.is_untrusted() || !(writer.is_typed() || writer.is_blank()) {
            self.trust = Trust::Foreign;
        }
        Ok(())
    }

    pub(crate) fn lend_bytes(&mut self) {
        self.trust = Trust::Foreign;
    }

    fn mark(&mut self) -> Result<(), Cause> {
        match &mut self.writer {
            Some(writer) => Ok(writer.set_typed(true)?),
            None => Ok(()),
        }
    }

    pub(super) fn before_psync(&mut self) -> Result<(), Cause> {
        if inside_transaction() {
            return Err(TransactionError::Inside.into());
        }
        match &mut self.writer {
            Some(writer) if self.trust == Trust::Foreign && writer.is_typed() => Ok(writer.set_typed(false)?),
            _ => Ok(()),
        }
    }

    /// Without the mark, the next attach verifies the object again: no loss.
    pub(super) fn after_psync(&mut self) {
        if self.trust == Trust::Verified && self.mark().is_ok() {
            self.trust = Trust::Own;
        }
        if let Some(anchored) = &mut self.anchored {
            anchored.after_psync();
        }
    }
}

impl Object {
    pub(crate) fn is_foreign(&self) -> bool {
        self.foreign
    }

    #[inline]
    pub(crate) fn lend_bytes(&mut self) {
        if !self.foreign {
            self.foreign = true;
            self.core_mut().lend_bytes();
        }
    }

    /// From now on only typed code stores, unless bytes are lent.
    pub(crate) fn adopt_blank(&mut self) -> Result<()> {
        if self.foreign {
            return Ok(());
        }
        let marked = self.core_mut().mark();
        marked.map_err(|cause| self.error("format the heap of", cause))
    }

    pub(crate) fn adopt(&mut self) {
        if self.foreign {
            self.foreign = false;
            self.core_mut().trust = Trust::Verified;
        }
    }
}
