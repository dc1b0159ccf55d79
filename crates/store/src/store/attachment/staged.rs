//! psync, as far as the medium is concerned: a batch becomes durable, then reaches the primary.

use super::cover::cover;
use super::primary::Primary;
use super::writer::Writer;
use super::written::Direct;
use crate::commit::expect_readings;
use crate::error::{Result, StoreError};
use crate::format::LINE;
use crate::format::batch::kind;
use crate::lane::{Batch, BatchSource};
use crate::mutant::Mutant;
use crate::recovery::Standing;
use crate::store::lanes::Advance;
use crate::store::locks::lock;
use std::sync::Arc;

/// An object's part of a psync: fills `batch` with the lines that changed.
pub trait Changes {
    /// Appends the changed lines; targets are offsets in the pool. Returns the end, in bytes from the
    /// object's start, of the last line appended (0 if there is none).
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64>;
}

impl<F: FnMut(u64, &mut Batch) -> Result<u64>> Changes for F {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        self(primary.start(), batch)
    }
}

/// psync of several objects of one pool as one atomic step. For the source see [`stage`].
pub fn psync_all(
    parts: &mut [(&mut Writer, &mut dyn Changes)],
    source: Option<&dyn BatchSource>,
) -> Result<()> {
    if Mutant::SplitPsync.is_on() && parts.len() > 1 {
        return parts.chunks_mut(1).try_for_each(|part| psync_all(part, source));
    }
    let parts = parts.iter_mut().map(|(writer, changes)| (&mut **writer, &mut **changes as &mut dyn Changes));
    stage(parts, source)?.commit()
}

/// The writers of a psync. One alone, the usual case, needs no memory of its own.
struct Writers<'w> {
    first: &'w mut Writer,
    others: Vec<&'w mut Writer>,
}

impl Writers<'_> {
    fn iter(&self) -> impl Iterator<Item = &Writer> {
        std::iter::once(&*self.first).chain(self.others.iter().map(|writer| &**writer))
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Writer> {
        std::iter::once(&mut *self.first).chain(self.others.iter_mut().map(|writer| &mut **writer))
    }

    /// Whether they have more than one lane between them.
    ///
    /// # Errors
    /// One of them can make no psync, or not this one.
    fn check(&self) -> Result<bool> {
        let mut apart = false;
        for writer in self.iter() {
            if !Arc::ptr_eq(&writer.store, &self.first.store) {
                return Err(StoreError::DifferentPools);
            }
            apart |= !Arc::ptr_eq(&writer.lane, &self.first.lane);
            writer.check()?;
        }
        Ok(apart)
    }

    /// Moves the objects to the first one's lane; each under a new binding, once its primary is durable.
    fn unite(&mut self) -> Result<()> {
        let (store, lane) = (&self.first.store, &self.first.lane);
        for writer in &mut self.others {
            if Arc::ptr_eq(&writer.lane, lane) {
                continue;
            }
            let left = writer.lane.clone();
            let changing = left.change()?;
            if !Mutant::UnsettledMove.is_on() {
                writer.settle_within(&changing)?;
            }
            let mut object = writer.object;
            store.update(|table| {
                object = table.entry(object.offset)?;
                store.bind(table, &mut object, lane.index)
            })?;
            writer.object = object;
            left.forget(object.offset);
            writer.lane = lane.clone();
            lane.bound.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    /// Space for the apply is claimed before the commit: a committed batch can always be applied.
    fn reserve(&mut self, batch: &Batch) -> Result<()> {
        let mut targets = batch.targets();
        for section in batch.sections() {
            let owner = self.iter_mut().find(|writer| writer.object.offset == section.entry.get());
            let runs = targets.by_ref().take(section.runs.get() as usize);
            let Some(writer) = owner else { continue };
            for (target, lines) in runs {
                writer.back(target, lines * LINE)?;
            }
        }
        Ok(())
    }
}

/// A psync whose content is fixed: stores made from now on belong to the next one. With a source, its bytes
/// must not change before the commit is done. It has its writers until then, so that none of them is psynced, grown or
/// detached in between. Dropped without a commit, it makes nothing durable.
#[must_use = "nothing is durable before the commit"]
pub struct Staged<'w, 'l> {
    /// `None`: a psync of no object.
    writers: Option<Writers<'w>>,
    /// Passed on as a pointer: a small psync takes so little time that copies of what was just stored show.
    batch: Box<Batch>,
    advances: Vec<Advance>,
    /// Pages that become objects' own, by entry.
    claimed: Vec<(u64, Vec<u64>)>,
    source: Option<&'l dyn BatchSource>,
}

/// Collects the changes of several objects of one pool. With a source, which has the bytes of all of them,
/// the batch may borrow lines where it pays ([`Batch::may_borrow`]).
///
/// Until the commit the writers are the psync's:
///
/// ```compile_fail,E0499
/// # use indelible_store::{error::Result, store::{Changes, Writer, stage}};
/// # fn example(writer: &mut Writer, changes: &mut dyn Changes) -> Result<()> {
/// let staged = stage([(&mut *writer, changes)], None)?;
/// writer.grow(8192)?; // error: `writer` is borrowed
/// staged.commit()
/// # }
/// ```
///
/// # Errors
/// `DifferentPools`, and those of [`Writer::psync`].
pub fn stage<'w, 'c, 'l>(
    parts: impl IntoIterator<Item = (&'w mut Writer, &'c mut (dyn Changes + 'c))>,
    source: Option<&'l dyn BatchSource>,
) -> Result<Staged<'w, 'l>> {
    let mut parts = parts.into_iter();
    let Some((first, changes)) = parts.next() else {
        let (advances, claimed) = (Vec::new(), Vec::new());
        return Ok(Staged { writers: None, batch: Box::default(), advances, claimed, source });
    };
    let (mut others, mut other_changes) = (Vec::new(), Vec::new());
    for (writer, changes) in parts {
        others.push(writer);
        other_changes.push(changes);
    }
    let mut writers = Writers { first, others };
    let apart = writers.check()?;
    writers.iter_mut().try_for_each(Writer::take_back_unproven)?;
    if apart {
        writers.unite()?;
    }
    let mut batch = writers.first.scratch.take().unwrap_or_default();
    batch.clear();
    let capabilities = writers.first.store.device.capabilities();
    // Lines of a base cannot be borrowed from the source.
    let based = writers.iter().any(|writer| writer.layers.is_some());
    batch.set_may_borrow(source.is_some() && capabilities.byte_addressable && !based);
    let mut advances = Vec::with_capacity(1 + writers.others.len());
    let mut claimed = Vec::new();
    writers.first.advance(changes, &mut batch, &mut advances, &mut claimed)?;
    for (writer, changes) in writers.others.iter().zip(other_changes) {
        writer.advance(changes, &mut batch, &mut advances, &mut claimed)?;
    }
    Ok(Staged { writers: Some(writers), batch, advances, claimed, source })
}

impl Writer {
    /// Appends the object's changes to `batch`, as a section of it, and its standing after them to `advances`, if there are
    /// any.
    fn advance(
        &self,
        changes: &mut dyn Changes,
        batch: &mut Batch,
        advances: &mut Vec<Advance>,
        claimed: &mut Vec<(u64, Vec<u64>)>,
    ) -> Result<()> {
        let (before, first) = (batch.data_len(), batch.runs());
        let entry = &self.object.entry;
        batch.begin(kind::PSYNC, self.object.offset, entry.binding.get());
        let mut primary = self.primary();
        let end = changes.collect(&mut primary, batch)?;
        drop(primary);
        let direct = self.publishable();
        if batch.data_len() == before && direct.is_none() {
            batch.cancel();
            return Ok(());
        }
        if let Some(layers) = &self.layers {
            let medium = &*self.store.device;
            claimed.push((self.object.offset, cover(batch, first, &self.object, &lock(layers), medium)?));
        }
        let published = self.standing.published.max(end).max(direct.unwrap_or(0));
        let standing = Standing { published, psyncs: self.standing.psyncs.saturating_add(1), direct: 0 };
        batch.set_progress(standing.published, standing.psyncs, standing.direct);
        advances.push(Advance::new(&self.object, standing, self.page_cache.clone()));
        Ok(())
    }
}

impl Staged<'_, '_> {
    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.advances.is_empty()
    }

    /// Makes it durable and brings it into the primaries.
    ///
    /// # Errors
    /// As for [`Writer::psync`].
    pub fn commit(mut self) -> Result<()> {
        let Some(mut writers) = self.writers.take() else { return Ok(()) };
        let result = self.publish(&mut writers);
        writers.first.scratch = Some(self.batch);
        result
    }

    fn publish(&mut self, writers: &mut Writers<'_>) -> Result<()> {
        if self.advances.is_empty() {
            // Nothing differs from the primary; but a primary that went back to an earlier state is not the
            // last psync.
            return expect_readings(writers.first.lane.medium());
        }
        if u32::try_from(self.batch.count()).is_err() {
            let why = "one psync changes less than 256 GiB: psync more often";
            return Err(StoreError::BadSize { size: self.batch.data_len(), why });
        }
        writers.reserve(&self.batch)?;
        let first = &*writers.first;
        if self.batch.sealed_len() > first.lane.capacity() {
            first.enlarge_lane(self.batch.sealed_len())?;
        }
        first.lane.commit(&mut self.batch, &self.advances, self.source)?;
        for writer in writers.iter_mut() {
            let own = |advance: &&Advance| advance.slot == writer.object.offset;
            if let Some(advance) = self.advances.iter().find(own) {
                writer.standing = advance.standing;
                writer.direct = Direct::None;
                writer.unsettled = true;
            }
            let own = self.claimed.iter().filter(|(slot, _)| *slot == writer.object.offset);
            if let Some(layers) = &writer.layers {
                let mut layers = lock(layers);
                own.flat_map(|(_, pages)| pages).for_each(|page| layers.claim(*page));
            }
        }
        Ok(())
    }
}
