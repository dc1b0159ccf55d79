//! A writable attachment: the store's writer of an object, and its shadow.
//!
//! Invariant of [`Core`]: `writer` has the object locked as long as it is mapped; `tracked` is
//! unmapped first.

mod differences;
mod growth;
mod revert;

use super::anchored::Anchored;
use super::batch_source::Shadows;
use super::origin::Trust;
use super::tracked::{Finding, Tracked};
use crate::dirty::{DirtyLines, PageRange, Rung};
use crate::error::Cause;
use crate::fault::removal::{self, Announced};
use crate::pool::Inner as PoolInner;
use crate::shadow::Shadow;
use indelible_store::store::{Changes, Psync, Writer};
use std::ops::Range;
use std::sync::Arc;

pub(crate) struct Core {
    pub(super) tracked: Tracked,
    /// Writes pending lines out before pages are dropped; goes before `writer`.
    announced: Option<Announced>,
    pub(super) writer: Option<Writer>,
    pub(super) trust: Trust,
    pub(super) anchored: Option<Anchored>,
}

impl Core {
    pub(crate) fn new(pool: Arc<PoolInner>, writer: Writer, finding: Finding) -> Result<Core, Cause> {
        let tracked = Tracked::new(pool, &writer, finding)?;
        let mut core =
            Core { tracked, announced: None, writer: Some(writer), trust: Trust::Own, anchored: None };
        core.begin_trust()?;
        if core.shadow()?.is_watched()
            && let Some(pending) = core.writer()?.pending()
        {
            core.announced = removal::before(move || pending.write_out());
        }
        Ok(core)
    }

    pub(crate) fn writer(&self) -> Result<&Writer, Cause> {
        self.writer.as_ref().ok_or(Cause::Detached)
    }

    pub(crate) fn shadow(&self) -> Result<&Shadow, Cause> {
        self.tracked.shadow()
    }

    pub(super) fn halves(&mut self) -> Result<(&mut Writer, &mut Tracked), Cause> {
        self.tracked.shadow()?;
        let writer = self.writer.as_mut().ok_or(Cause::Detached)?;
        Ok((writer, &mut self.tracked))
    }

    pub(crate) fn psync(&mut self) -> Result<(), Cause> {
        self.before_psync()?;
        let (writer, tracked) = self.halves()?;
        tracked.begin()?;
        tracked.write_fresh(writer)?;
        let psync = Psync::begin([&mut *writer])?;
        let now = psync.writers().next().ok_or(Cause::Detached)?;
        tracked.follow(now);
        let parts = [tracked.part(&now.object().entry)?];
        let source = Shadows(&parts);
        let mut comparison = tracked.comparison()?;
        let staged = psync.stage([&mut comparison as &mut dyn Changes], Some(&source))?;
        let start = tracked.stats.start();
        let result = staged.commit();
        tracked.stats.committed(start);
        tracked.finish(writer, &result)?;
        result?;
        self.after_psync();
        Ok(())
    }

    pub(crate) fn marks(&self) -> Option<(Arc<DirtyLines>, bool)> {
        let shadow = self.shadow().ok()?;
        Some((shadow.marks()?, shadow.rung() == Some(Rung::Explicit)))
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.shadow().is_ok_and(|shadow| shadow.rung() == Some(Rung::Mprotect))
    }

    pub(crate) fn is_typed(&self) -> bool {
        self.tracked.is_typed()
    }

    /// For code that may not mark stores. After an error each psync tries again, and fails if it
    /// cannot.
    pub(crate) fn find_stores(&mut self) -> Result<(), Cause> {
        self.tracked.find_stores()
    }

    pub(crate) fn patience(&self) -> std::time::Duration {
        self.tracked.pool.store.patience()
    }

    pub(crate) fn stored(&self, range: Range<usize>) {
        let Ok(shadow) = self.shadow() else { return };
        shadow.stored(range);
    }

    pub(crate) fn detach(&mut self) -> Result<(), Cause> {
        let Some(writer) = self.unmapped() else { return Ok(()) };
        Anchored::leave(self.anchored.take(), writer)
    }

    /// Detaches the memory alone; the caller ends a returned writer. An object with an anchor is
    /// detached as a whole.
    pub(crate) fn detach_memory(&mut self) -> Option<Writer> {
        if self.anchored.is_some() {
            let _ = self.detach();
        }
        self.unmapped()
    }

    fn unmapped(&mut self) -> Option<Writer> {
        self.tracked.unmap();
        self.announced = None;
        self.writer.take()
    }

    pub(crate) fn checkpoint(&mut self) -> Result<(), Cause> {
        self.writer()?.checkpoint()?;
        self.anchored.as_mut().map_or(Ok(()), |anchored| anchored.tell(false))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

fn pages(ranges: &[PageRange]) -> impl Iterator<Item = u64> + '_ {
    ranges.iter().flat_map(|range| range.start..range.end())
}
