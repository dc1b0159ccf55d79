//! The shadow of an object attached for writing, and a psync's lists of its pages. Calls pass the
//! store's writer in: a staged psync holds it while the shadow continues.
//!
//! Invariants of [`Tracked`]:
//!
//! 1. A page that the tracker does not report equals the primary in every byte, and so does a line
//!    that it does not count among those of a page.
//! 2. `primary`, where it is not null, points at the object's first byte in the medium's own
//!    mapping, which lives as long as `pool`.

#![allow(unsafe_code)]

mod fresh;
mod stores;
mod surplus;

pub(crate) use self::stores::Finding;
use self::stores::Stores;
use super::batch_source::Part;
use super::compare::Comparison;
use super::stats::PsyncStats;
use crate::dirty::{PageRange, Rung};
use crate::error::Cause;
use crate::pool::{Inner as PoolInner, PageOrigin};
use crate::shadow::Shadow;
use crate::sys::PAGE;
use indelible_store::error::StoreError;
use indelible_store::format::entry::Entry;
use indelible_store::store::Writer;
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Tracked {
    shadow: Option<Shadow>,
    /// After a failed growth: a placeholder, so that stale references do not fault.
    lost: Option<Shadow>,
    primary: *const u8,
    extent: u64,
    /// Whether the shadow maps an extent that is a base now, or that the object left: its pages
    /// must stay in memory.
    apart: bool,
    stores: Stores,
    own: Option<Rung>,
    pub(super) pool: Arc<PoolInner>,
    pub(super) ranges: Vec<PageRange>,
    pub(super) changed: Vec<PageRange>,
    pub(super) unchanged: Vec<PageRange>,
    pace: Option<(u64, Duration)>,
    pub(super) stats: PsyncStats,
}

// SAFETY: `primary` points into the medium's mapping (2), which any thread may read by assembly.
unsafe impl Send for Tracked {}

fn absent(lost: &Option<Shadow>) -> Cause {
    if lost.is_some() { Cause::Store(StoreError::Poisoned) } else { Cause::Detached }
}

impl Tracked {
    pub(super) fn new(pool: Arc<PoolInner>, writer: &Writer, finding: Finding) -> Result<Tracked, Cause> {
        let entry = &writer.object().entry;
        let mut params = pool.mapping_of(entry, PageOrigin::of(writer), true);
        let stores = Stores::of(finding, &mut params);
        let shadow = Shadow::attach(params)?;
        let mut tracked = Tracked {
            shadow: Some(shadow),
            lost: None,
            primary: std::ptr::null(),
            extent: entry.primary_offset(),
            apart: false,
            stores,
            own: if let Finding::By(rung) = finding { Some(rung) } else { None },
            pool,
            ranges: Vec::new(),
            changed: Vec::new(),
            unchanged: Vec::new(),
            pace: None,
            stats: PsyncStats::default(),
        };
        tracked.find_primary(entry);
        Ok(tracked)
    }

    fn find_primary(&mut self, entry: &Entry) {
        let offset = entry.primary_offset();
        self.extent = offset;
        let base = self.pool.media.memory_base().filter(|_| !self.pool.avoids_holes(entry));
        self.primary = match base {
            // SAFETY: the extent lies within the pool, which is mapped whole.
            Some(base) => unsafe { base.as_ptr().add(offset as usize) },
            None => std::ptr::null(),
        };
    }

    pub(super) fn shadow(&self) -> Result<&Shadow, Cause> {
        self.shadow.as_ref().ok_or_else(|| absent(&self.lost))
    }

    pub(super) fn shadow_mut(&mut self) -> Result<&mut Shadow, Cause> {
        self.shadow.as_mut().ok_or_else(|| absent(&self.lost))
    }

    pub(super) fn mapped(&self) -> usize {
        self.shadow.as_ref().or(self.lost.as_ref()).map_or(0, Shadow::len)
    }

    pub(super) fn unmap(&mut self) {
        (self.shadow, self.lost) = (None, None);
    }

    pub(super) fn keep(&mut self, size: u64) -> Result<(), Cause> {
        if size > self.pool.media.device().len() {
            return Ok(());
        }
        Ok(self.shadow_mut()?.keep(size.next_multiple_of(PAGE as u64) as usize)?)
    }

    pub(super) fn let_go(&mut self) {
        if let Some(shadow) = &mut self.shadow {
            shadow.let_go();
        }
    }

    pub(super) fn shows_extent(&self) -> bool {
        !self.apart && self.shadow.as_ref().is_some_and(Shadow::is_file)
    }

    pub(super) fn grow(&mut self, writer: &Writer) -> Result<(), Cause> {
        self.follow(writer);
        let entry = &writer.object().entry;
        self.find_primary(entry);
        // An extent may become a base, and be merged, while the shadow still maps pages of it.
        let extent = (!self.apart).then(|| entry.primary_offset());
        Ok(self.shadow_mut()?.grow(entry.content_len() as usize, extent)?)
    }

    pub(super) fn follow(&mut self, writer: &Writer) {
        let entry = &writer.object().entry;
        if entry.primary_offset() == self.extent {
            return;
        }
        self.find_primary(entry);
        self.apart = self.shadow.as_ref().is_some_and(Shadow::is_file);
    }

    /// After an error the object is lost, and a placeholder has its range.
    ///
    /// # Safety
    /// No other thread uses the object until this returns.
    pub(super) unsafe fn move_to(&mut self, writer: &Writer) -> Result<(), Cause> {
        let entry = &writer.object().entry;
        let Some(shadow) = &mut self.shadow else { return Err(absent(&self.lost)) };
        let place = if shadow.is_file() { PageOrigin::Mapped } else { PageOrigin::Live(writer.pages()) };
        let mut params = self.pool.mapping_of(entry, place, true);
        let finding = match self.stores {
            Stores::Marked => Finding::Typed,
            _ => self.own.map_or(Finding::Pool, Finding::By),
        };
        self.stores = Stores::of(finding, &mut params);
        // SAFETY: the caller's promise.
        if let Err(error) = unsafe { shadow.move_to(&params) } {
            self.lost = self.shadow.take();
            return Err(error.into());
        }
        self.find_primary(entry);
        self.apart = false;
        Ok(())
    }

    pub(super) fn collect(&mut self) -> Result<(), Cause> {
        self.be_ready()?;
        let Some(shadow) = &mut self.shadow else { return Err(absent(&self.lost)) };
        self.ranges.clear();
        self.changed.clear();
        self.unchanged.clear();
        shadow.collect(&mut self.ranges)?;
        self.stats.found_by_name = shadow.found_by_name();
        Ok(())
    }

    pub(super) fn begin(&mut self) -> Result<(), Cause> {
        let start = self.stats.start();
        self.collect()?;
        self.stats.collected(start);
        Ok(())
    }

    pub(super) fn comparison(&mut self) -> Result<Comparison<'_>, Cause> {
        let Some(shadow) = &self.shadow else { return Err(absent(&self.lost)) };
        Ok(Comparison {
            shadow,
            primary: self.primary,
            ranges: &self.ranges,
            changed: &mut self.changed,
            unchanged: &mut self.unchanged,
            stats: &mut self.stats,
            pace: &mut self.pace,
        })
    }

    pub(super) fn part(&self, entry: &Entry) -> Result<Part, Cause> {
        Ok(Part::new(entry.primary_offset(), self.shadow()?))
    }

    pub(super) fn release(&mut self) -> Result<(), Cause> {
        Ok(self.shadow_mut()?.release()?)
    }

    pub(super) fn settle(&mut self) -> Result<(), Cause> {
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

    /// If the object's memory is limited, drops pages without stores since the last psync.
    ///
    /// # Safety
    /// The collected pages were compared just now, and all stores are held up from before that
    /// until this returns.
    pub(super) unsafe fn evict_clean(&self) {
        if let Some(shadow) = &self.shadow {
            // SAFETY: the caller's promise: a page not collected, or not differing, is as the last
            // psync left it.
            unsafe { shadow.evict(&self.changed) };
        }
    }

    pub(super) fn mark_changed(&self) {
        if let Some(shadow) = &self.shadow {
            self.changed.iter().for_each(|range| shadow.mark_again(*range));
        }
    }

    pub(super) fn finish(
        &mut self,
        writer: &mut Writer,
        committed: &Result<(), StoreError>,
    ) -> Result<(), Cause> {
        if committed.is_err() {
            self.mark_changed();
            return Ok(());
        }
        self.settle()?;
        // SAFETY: everything was settled, and the caller's exclusive borrow (in C: the caller's
        // promise) keeps stores away until this returns.
        unsafe { self.shadow_mut()?.evict(&[]) };
        // Dropped pages come back from the mapped extent: the former one.
        let home = !writer.has_base() && !self.pool.avoids_holes(&writer.object().entry);
        if (!self.apart || home) && self.shadow_mut()?.renewal_due()? {
            match writer.apply() {
                // The psync is done; the renewal only saves time, and is due again after the next
                // one.
                Err(StoreError::HeldStill { .. }) => return Ok(()),
                applied => applied?,
            }
            let extent = self.extent;
            // SAFETY: everything was settled and applied, and the caller's exclusive borrow (in C:
            // the caller's promise) keeps stores away until this returns.
            unsafe { self.shadow_mut()?.renew(extent) }?;
            self.apart = false;
            writer.give_former_up();
        }
        self.drop_surplus(writer, false)
    }
}
