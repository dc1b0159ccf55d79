//! psync from the shadow's side: finding the changed lines, committing them, and settling the pages afterwards.
//!
//! Invariants of [`Core`]:
//! 1. `writer` has the object locked as long as `shadow` or `lost` is mapped; they go first.
//! 2. A page that the tracker does not report equals the primary in every byte, and so does a line that it does not
//!    count among those of a page.
//! 3. `primary`, where it is not null, points at the object's first byte in the medium's own mapping,
//!    which lives as long as `pool`.

#![allow(unsafe_code)]

mod differences;
mod revert;

use super::batch_source::{Part, Shadows};
use super::compare::Comparison;
use super::origin::Trust;
use super::stats::PsyncStats;
use crate::dirty::{DirtyLines, PageRange, Rung};
use crate::error::Cause;
use crate::fault::removal::{self, Announced};
use crate::pool::Inner as PoolInner;
use crate::shadow::{Shadow, copy_lines};
use crate::sys::PAGE;
use indelible_store::error::StoreError;
use indelible_store::lane::BatchSource;
use indelible_store::store::{Changes, Staged, Writer, stage};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Never-psynced pages from which on it pays to write them straight to the primary: below, two more
/// barriers cost more than writing twice.
const DIRECT_FROM: u64 = 256;
/// Bytes copied out of the shadow at a time on their way straight to the primary.
const PIECE: usize = 64 << 10;

/// Parts of a writable attachment.
pub(crate) struct Core {
    shadow: Option<Shadow>,
    /// In the place of `shadow`, after a growth that could not be finished: a placeholder mapping, so that stale
    /// references do not fault.
    lost: Option<Shadow>,
    /// Writes pending lines out before pages are dropped; goes before `writer`.
    announced: Option<Announced>,
    pub(super) writer: Option<Writer>,
    primary: *const u8,
    pub(super) pool: Arc<PoolInner>,
    ranges: Vec<PageRange>,
    changed: Vec<PageRange>,
    unchanged: Vec<PageRange>,
    /// As `Comparison` has it.
    pace: Option<(u64, Duration)>,
    pub(super) trust: Trust,
    pub(crate) stats: PsyncStats,
}

// SAFETY: `primary` points into the medium's mapping (3), which any thread may read by assembly.
unsafe impl Send for Core {}

/// Why there is no shadow.
fn absent(lost: &Option<Shadow>) -> Cause {
    if lost.is_some() { Cause::Store(StoreError::Poisoned) } else { Cause::Detached }
}

impl Core {
    pub(crate) fn new(pool: Arc<PoolInner>, writer: Writer) -> Result<Core, Cause> {
        let mut core = Core {
            shadow: None,
            lost: None,
            announced: None,
            writer: Some(writer),
            primary: std::ptr::null(),
            pool,
            ranges: Vec::new(),
            changed: Vec::new(),
            unchanged: Vec::new(),
            pace: None,
            trust: Trust::Own,
            stats: PsyncStats::default(),
        };
        core.shadow = Some(core.pool.map(&core.writer()?.object().entry, true)?);
        core.find_primary()?;
        core.begin_trust()?;
        if core.shadow()?.is_watched()
            && let Some(pending) = core.writer()?.pending()
        {
            core.announced = removal::before(move || pending.write_out());
        }
        Ok(core)
    }

    fn find_primary(&mut self) -> Result<(), Cause> {
        let entry = &self.writer()?.object().entry;
        let offset = entry.primary_offset();
        let base = self.pool.media.memory_base().filter(|_| !self.pool.avoids_holes(entry, true));
        self.primary = match base {
            // SAFETY: the extent lies within the pool, which is mapped whole.
            Some(base) => unsafe { base.as_ptr().add(offset as usize) },
            None => std::ptr::null(),
        };
        Ok(())
    }

    pub(crate) fn writer(&self) -> Result<&Writer, Cause> {
        self.writer.as_ref().ok_or(Cause::Detached)
    }

    pub(crate) fn shadow(&self) -> Result<&Shadow, Cause> {
        self.shadow.as_ref().ok_or_else(|| absent(&self.lost))
    }

    /// Makes all stores since the last psync durable as one step.
    pub(crate) fn psync(&mut self, cut: bool) -> Result<(), Cause> {
        if cut {
            return psync_cores(&mut [self], true);
        }
        // As `psync_cores`, without collections of one.
        self.prepare(false)?;
        let parts = [self.part()?];
        let source = Shadows(&parts);
        let (writer, mut changes) = self.split()?;
        let staged = stage(&mut [(&mut *writer, &mut changes)], Some(&source))?;
        let start = changes.stats.start();
        let result = staged.commit(&mut [writer]);
        self.stats.committed(start);
        self.finish(&result)?;
        result?;
        self.after_psync();
        Ok(())
    }

    /// Follows a commit during which nobody stored.
    fn finish(&mut self, committed: &Result<(), StoreError>) -> Result<(), Cause> {
        match committed {
            Ok(()) => self.settle_and_reclaim(),
            // A cut told the tracker that these are clean.
            Err(_) => {
                self.mark_changed();
                Ok(())
            }
        }
    }

    /// The set in which bytes are marked as dirty, and whether every store has to be.
    pub(crate) fn marks(&self) -> Option<(Arc<DirtyLines>, bool)> {
        let shadow = self.shadow.as_ref()?;
        Some((shadow.marks()?, shadow.rung() == Some(Rung::Explicit)))
    }

    /// Marks bytes that are stored to through the page tables, if the rung does not find such stores by itself.
    pub(crate) fn stored(&self, range: Range<usize>) {
        let Some(shadow) = &self.shadow else { return };
        shadow.stored(range);
    }

    /// Extends the object. Stores that were not psynced stay so.
    ///
    /// All that is likely to fail comes before the growth is published, and leaves everything as it was. If the
    /// object moved and cannot be mapped from where it is, it is lost to this attachment: every call says so, and its
    /// range stays mapped.
    pub(crate) fn grow(&mut self, size: u64) -> Result<(), Cause> {
        let (Some(writer), Some(shadow)) = (&mut self.writer, &mut self.shadow) else {
            return Err(absent(&self.lost));
        };
        // The dirty pages are collected before the primary moves, and copied only if it does.
        self.ranges.clear();
        shadow.collect(&mut self.ranges)?;
        let end = writer.object().entry.size.get() as usize;
        // A size beyond the pool's is refused by the store.
        if size <= self.pool.media.device().len() {
            shadow.keep(size.next_multiple_of(PAGE as u64) as usize)?;
        }
        let moved = writer.grow(size).inspect_err(|_| shadow.let_go())?;
        if !moved {
            let grown = shadow.grow(writer.object().entry.extent_len() as usize);
            self.clear_behind(end)?;
            return Ok(grown?);
        }
        let mut saved = Vec::new();
        for page in pages(&self.ranges) {
            let mut bytes = Box::new([0; PAGE]);
            // SAFETY: a page of the shadow; the box lies outside.
            unsafe { crate::shadow::copy_page(shadow.page_bytes(page), &mut bytes) };
            saved.push((page, bytes));
        }
        // SAFETY: the caller has the object exclusively.
        if let Err(error) = unsafe { shadow.move_to(&self.pool.mapping_of(&writer.object().entry, true)) } {
            self.lost = self.shadow.take();
            return Err(error.into());
        }
        self.find_primary()?;
        let shadow = self.shadow()?;
        for (page, bytes) in saved {
            shadow.stored(bytes_of(PageRange { start: page, count: 1 }));
            // SAFETY: a page of the new shadow, which the caller has exclusively.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), shadow.page_bytes(page).cast_mut(), PAGE)
            };
        }
        self.clear_behind(end)
    }

    /// Clears the rest of the last page behind byte `end`, left by a shrink, if the shadow has a copy of
    /// its own: the primary was cleared, and the next comparison would bring it back.
    fn clear_behind(&mut self, end: usize) -> Result<(), Cause> {
        let shadow = self.shadow()?;
        let (page, from) = ((end / PAGE) as u64, end % PAGE);
        if from == 0 {
            return Ok(());
        }
        let mut bytes = Box::new([0; PAGE]);
        // SAFETY: a page of the shadow; the box lies outside.
        unsafe { crate::shadow::copy_page(shadow.page_bytes(page), &mut bytes) };
        if bytes[from..].iter().any(|byte| *byte != 0) {
            shadow.stored(end..end + PAGE - from);
            // SAFETY: within that page, which the caller has exclusively.
            unsafe { std::ptr::write_bytes(shadow.page_bytes(page).cast_mut().add(from), 0, PAGE - from) };
        }
        Ok(())
    }

    /// Extends the object where it stands: its pages stay mapped throughout.
    pub(crate) fn grow_in_place(&mut self, size: u64) -> Result<(), Cause> {
        let (Some(writer), Some(shadow)) = (&mut self.writer, &mut self.shadow) else {
            return Err(absent(&self.lost));
        };
        writer.grow_in_place(size)?;
        let len = writer.object().entry.extent_len() as usize;
        Ok(shadow.grow(len)?)
    }

    /// Bytes that were asked for: the rest of the last page does not survive growth. Fewer if they could
    /// not be mapped.
    pub(crate) fn size(&self) -> usize {
        let mapped = self.shadow.as_ref().or(self.lost.as_ref()).map_or(0, Shadow::len);
        self.writer().map_or(0, |writer| writer.object().entry.size.get() as usize).min(mapped)
    }

    /// Bytes of addresses that are the object's, to grow into.
    pub(crate) fn reach(&self) -> usize {
        self.writer().map_or(0, |writer| writer.object().entry.reserved.get() as usize)
    }

    /// Ends the attachment; stores that were not psynced are forgotten.
    pub(crate) fn detach(&mut self) -> Result<(), Cause> {
        (self.shadow, self.lost, self.announced) = (None, None, None);
        match self.writer.take() {
            Some(writer) => Ok(writer.detach()?),
            None => Ok(()),
        }
    }

    /// Collects, and writes pages that were never psynced straight to the primary.
    fn prepare(&mut self, cut: bool) -> Result<(), Cause> {
        self.before_psync()?;
        let start = self.stats.start();
        let (Some(writer), Some(shadow)) = (&mut self.writer, &mut self.shadow) else {
            return Err(absent(&self.lost));
        };
        self.ranges.clear();
        self.changed.clear();
        self.unchanged.clear();
        shadow.collect(&mut self.ranges)?;
        self.stats.collected(start);
        let fresh = writer.published().div_ceil(PAGE as u64);
        let end = self.ranges.last().map_or(0, |range| range.end());
        if cut || end <= fresh || pages_from(&self.ranges, fresh) < DIRECT_FROM {
            return Ok(());
        }
        let start = self.stats.start();
        writer.begin_direct(end * PAGE as u64)?;
        let mut buffer = vec![0; PIECE];
        for range in &self.ranges {
            let mut page = range.start.max(fresh);
            while page < range.end() {
                let count = (range.end() - page).min((PIECE / PAGE) as u64);
                let bytes = &mut buffer[..count as usize * PAGE];
                for (index, piece) in bytes.chunks_exact_mut(PAGE).enumerate() {
                    // SAFETY: a page of the shadow; the buffer lies outside.
                    unsafe { copy_lines(shadow.page_bytes(page + index as u64), u64::MAX, piece) };
                }
                writer.write_direct(page * PAGE as u64, bytes)?;
                self.stats.direct_bytes += bytes.len() as u64;
                self.changed.push(PageRange { start: page, count });
                page += count;
            }
        }
        writer.end_direct()?;
        self.ranges.retain_mut(|range| {
            range.count = range.end().min(fresh).saturating_sub(range.start);
            range.count > 0
        });
        self.stats.wrote_direct(start);
        Ok(())
    }

    pub(super) fn shadow_mut(&mut self) -> Result<&mut Shadow, Cause> {
        self.shadow.as_mut().ok_or_else(|| absent(&self.lost))
    }

    fn part(&self) -> Result<Part, Cause> {
        Ok(Part::new(self.writer()?.object().entry.primary_offset(), self.shadow()?))
    }

    fn split(&mut self) -> Result<(&mut Writer, Comparison<'_>), Cause> {
        let (Some(shadow), Some(writer)) = (&self.shadow, &mut self.writer) else {
            return Err(absent(&self.lost));
        };
        let comparison = Comparison {
            shadow,
            primary: self.primary,
            ranges: &self.ranges,
            changed: &mut self.changed,
            unchanged: &mut self.unchanged,
            stats: &mut self.stats,
            pace: &mut self.pace,
        };
        Ok((writer, comparison))
    }

    fn settle_and_reclaim(&mut self) -> Result<(), Cause> {
        self.settle()?;
        if self.shadow_mut()?.renewal_due()? {
            self.writer()?.apply()?;
            // SAFETY: everything was settled and applied, and the caller's exclusive borrow (in C: the
            // caller's promise) keeps stores away until this returns.
            unsafe { self.shadow_mut()?.renew() }?;
        }
        Ok(())
    }

    fn mark_changed(&mut self) {
        if let Some(shadow) = &self.shadow {
            self.changed.iter().for_each(|range| shadow.mark_again(*range));
        }
    }

    /// Tells the tracker which pages had changed.
    fn settle(&mut self) -> Result<(), Cause> {
        let start = self.stats.start();
        if let Some(shadow) = &mut self.shadow {
            if let Some((pages, took)) = self.pace.take() {
                shadow.compared(pages, took);
            }
            shadow.settle(&self.changed, &self.unchanged)?;
        }
        self.stats.settled(start);
        Ok(())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

/// psync of several objects as one step. `cut`: other threads may store meanwhile; their stores wait
/// until this one's content is fixed, or belong to the next psync.
pub(crate) fn psync_cores(cores: &mut [&mut Core], cut: bool) -> Result<(), Cause> {
    let mut parts = Vec::with_capacity(cores.len());
    for core in cores.iter() {
        parts.push(core.part()?);
    }
    let source = Shadows(&parts);
    // Others may store as soon as the content of a cut is fixed, so that it has to be copied.
    let staged = if cut { stage_held(cores) } else { stage_cores(cores, Some(&source)) }?;
    let start = cores.first().and_then(|core| core.stats.start());
    let result = staged.commit(&mut writers(cores));
    if let Some(core) = cores.first_mut() {
        core.stats.committed(start);
    }
    for core in cores.iter_mut() {
        // The pages of a cut were settled with the stores held up.
        if !cut || result.is_err() {
            core.finish(&result)?;
        }
    }
    result?;
    cores.iter_mut().for_each(|core| core.after_psync());
    Ok(())
}

fn writers<'a>(cores: &'a mut [&mut Core]) -> Vec<&'a mut Writer> {
    cores.iter_mut().filter_map(|core| core.writer.as_mut()).collect()
}

/// Stages with all stores held up; lets them pass again as soon as the content is fixed.
fn stage_held(cores: &mut [&mut Core]) -> Result<Staged<'static>, Cause> {
    let mut held = 0;
    let result = (|| {
        for core in cores.iter_mut() {
            core.shadow_mut()?.hold()?;
            held += 1;
        }
        let staged = stage_cores(cores, None)?;
        for core in cores.iter_mut() {
            core.settle()?;
        }
        Ok(staged)
    })();
    for core in &mut cores[..held] {
        core.shadow_mut()?.release()?;
    }
    result
}

/// Without a source it is a cut: no page goes straight to the primary, either.
fn stage_cores<'l>(
    cores: &mut [&mut Core],
    source: Option<&'l dyn BatchSource>,
) -> Result<Staged<'l>, Cause> {
    for core in cores.iter_mut() {
        core.prepare(source.is_none())?;
    }
    let mut split = Vec::with_capacity(cores.len());
    for core in cores.iter_mut() {
        split.push(core.split()?);
    }
    let mut parts: Vec<(&mut Writer, &mut dyn Changes)> =
        split.iter_mut().map(|(writer, part)| (&mut **writer, part as &mut dyn Changes)).collect();
    Ok(stage(&mut parts, source)?)
}

fn pages(ranges: &[PageRange]) -> impl Iterator<Item = u64> + '_ {
    ranges.iter().flat_map(|range| range.start..range.end())
}

fn bytes_of(pages: PageRange) -> Range<usize> {
    pages.start as usize * PAGE..pages.end() as usize * PAGE
}

fn pages_from(ranges: &[PageRange], first: u64) -> u64 {
    ranges.iter().map(|range| range.end().saturating_sub(range.start.max(first))).sum()
}
