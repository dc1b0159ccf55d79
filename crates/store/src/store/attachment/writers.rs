//! The writers of a psync, from its beginning to its end.

use super::writer::Writer;
use crate::error::{Result, StoreError};
use crate::format::LINE;
use crate::lane::Batch;
use crate::mutant::Mutant;
use crate::store::lanes::Changing;
use std::sync::Arc;

pub(super) struct Writers<'w> {
    pub(super) first: &'w mut Writer,
    pub(super) others: Vec<&'w mut Writer>,
}

impl Writers<'_> {
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Writer> {
        std::iter::once(&*self.first).chain(self.others.iter().map(|writer| &**writer))
    }

    #[inline]
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Writer> {
        std::iter::once(&mut *self.first).chain(self.others.iter_mut().map(|writer| &mut **writer))
    }

    /// Whether they have several lanes; fails if one can make no psync.
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

    fn unite(&mut self) -> Result<()> {
        let (store, lane) = (&self.first.store, &self.first.lane);
        for writer in &mut self.others {
            if Arc::ptr_eq(&writer.lane, lane) {
                continue;
            }
            let left = writer.lane.clone();
            let changing = writer.change()?;
            if !Mutant::UnsettledMove.is_on() {
                writer.settle_within(&changing)?;
            }
            let mut object = writer.object;
            let moved = store.update(|table| {
                object = table.entry(object.offset)?;
                store.bind(table, &mut object, lane.index)?;
                // No revision comes before the object is on the lane.
                writer.read_on(lane, lane.newest_revision()?);
                Ok(())
            });
            if let Err(error) = moved {
                let lost = left.medium().is_over();
                writer.read_on(&left, if lost { u64::MAX } else { changing.revision() });
                return Err(error);
            }
            writer.object = object;
            left.forget(object.offset);
            (writer.lane, writer.revision) = (lane.clone(), lane.revision());
            lane.bound.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    pub(super) fn reserve(&mut self, batch: &Batch) -> Result<()> {
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

/// A begun psync: until its end its objects are not held still, and no other call changes them.
#[must_use = "nothing is durable before the commit"]
pub struct Psync<'w> {
    pub(super) writers: Option<(Writers<'w>, Changing)>,
}

impl<'w> Psync<'w> {
    /// Begins a psync of objects of one pool. Waits while one is held still: the caller holds no
    /// contended lock.
    ///
    /// # Errors
    /// `DifferentPools`, and those of [`Writer::psync`].
    pub fn begin(writers: impl IntoIterator<Item = &'w mut Writer>) -> Result<Self> {
        let mut writers = writers.into_iter();
        let Some(first) = writers.next() else { return Ok(Psync { writers: None }) };
        let mut writers = Writers { first, others: writers.collect() };
        let apart = writers.check()?;
        writers.iter_mut().try_for_each(Writer::take_back_unproven)?;
        if apart {
            writers.unite()?;
        }
        let changing = writers.first.change()?;
        writers.others.iter_mut().try_for_each(|writer| writer.see(&changing))?;
        Ok(Psync { writers: Some((writers, changing)) })
    }

    /// The writers, in order.
    pub fn writers(&self) -> impl Iterator<Item = &Writer> {
        self.writers.iter().flat_map(|(writers, _)| writers.iter())
    }
}
