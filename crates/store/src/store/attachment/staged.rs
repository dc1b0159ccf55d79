//! psync on the medium: a batch becomes durable, then reaches the primary.

use super::cover::{Covered, cover, needs_cover};
use super::primary::Primary;
use super::sealed_pages::Sealing;
use super::writer::Writer;
use super::writers::{Psync, Writers};
use super::written::Direct;
use crate::commit::expect_readings;
use crate::error::{Result, StoreError};
use crate::format::batch::kind;
use crate::lane::{Batch, BatchSource};
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::recovery::Standing;
use crate::store::lanes::{Advance, Changing};
use crate::store::locks::lock;

type Claims = Vec<(u64, Covered)>;
type Seals = Vec<(u64, Sealing)>;

/// An object's part of a psync.
pub trait Changes {
    /// Appends the changed lines for offsets in the pool. Returns the end of the last line, from
    /// the object's start (0: none).
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64>;
}

impl<F: FnMut(u64, &mut Batch) -> Result<u64>> Changes for F {
    fn collect(&mut self, primary: &mut Primary<'_>, batch: &mut Batch) -> Result<u64> {
        self(primary.start(), batch)
    }
}

/// psync of several objects of one pool as one atomic step; for the source see [`stage`].
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

/// A psync with fixed content. A source's bytes must not change before the commit. Dropped, it
/// makes nothing durable.
#[must_use = "nothing is durable before the commit"]
pub struct Staged<'w, 'l> {
    writers: Option<(Writers<'w>, Changing)>,
    /// Boxed: copies would show.
    batch: Box<Batch>,
    advances: Vec<Advance>,
    claimed: Claims,
    sealed: Seals,
    source: Option<&'l dyn BatchSource>,
}

/// Begins a psync of several objects of one pool and collects their changes; see [`Psync`].
///
/// # Errors
/// `DifferentPools`, and those of [`Writer::psync`].
pub fn stage<'w, 'c, 'l>(
    parts: impl IntoIterator<Item = (&'w mut Writer, &'c mut (dyn Changes + 'c))>,
    source: Option<&'l dyn BatchSource>,
) -> Result<Staged<'w, 'l>> {
    let (writers, changes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Psync::begin(writers)?.stage(changes, source)
}

impl<'w> Psync<'w> {
    /// Collects each object's changes. With a source of all bytes, the batch may borrow lines where
    /// it pays ([`Batch::may_borrow`]).
    ///
    /// Until the commit the writers are the psync's:
    /// ```compile_fail,E0499
    /// # use indelible_store::{error::Result, store::{Changes, Psync, Writer}};
    /// # fn example(writer: &mut Writer, changes: &mut dyn Changes) -> Result<()> {
    /// let staged = Psync::begin([&mut *writer])?.stage([changes], None)?;
    /// writer.grow(8192)?; // error: `writer` is borrowed
    /// staged.commit()
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there are not as many changes as writers.
    pub fn stage<'c, 'l>(
        self,
        changes: impl IntoIterator<Item = &'c mut (dyn Changes + 'c)>,
        source: Option<&'l dyn BatchSource>,
    ) -> Result<Staged<'w, 'l>> {
        let Some((mut writers, changing)) = self.writers else {
            let (advances, claimed, sealed) = (Vec::new(), Vec::new(), Vec::new());
            return Ok(Staged { writers: None, batch: Box::default(), advances, claimed, sealed, source });
        };
        let mut batch = writers.first.scratch.take().unwrap_or_default();
        batch.clear();
        let capabilities = writers.first.store.device.capabilities();
        // The source has neither a base's lines nor ciphertext.
        let made = writers.iter().any(|writer| writer.based || writer.sealed.is_some());
        batch.set_may_borrow(source.is_some() && capabilities.byte_addressable && !made);
        let mut advances = Vec::with_capacity(1 + writers.others.len());
        let (mut claimed, mut sealed) = (Vec::new(), Vec::new());
        let mut changes = changes.into_iter();
        for writer in writers.iter_mut() {
            let changes = changes.next().expect("each object has its changes");
            writer.advance(changes, &mut batch, &mut advances, (&mut claimed, &mut sealed))?;
        }
        Ok(Staged { writers: Some((writers, changing)), batch, advances, claimed, sealed, source })
    }
}

impl Writer {
    fn advance(
        &mut self,
        changes: &mut dyn Changes,
        batch: &mut Batch,
        advances: &mut Vec<Advance>,
        (claimed, seals): (&mut Claims, &mut Seals),
    ) -> Result<()> {
        let (before, first) = (batch.data_len(), batch.runs());
        batch.begin(kind::PSYNC, self.object.offset, self.object.entry.binding.get());
        let end = if let Some(sealed) = self.sealed.clone() {
            let (end, sealing) = self.collect_sealed(&sealed, changes, batch)?;
            seals.push((self.object.offset, sealing));
            end
        } else {
            let mut primary = self.primary();
            changes.collect(&mut primary, batch)?
        };
        let direct = self.publishable();
        if batch.data_len() == before && direct.is_none() {
            batch.cancel();
            return Ok(());
        }
        if self.based && needs_cover(batch, first, &self.object, &lock(&self.layers)) {
            let (object, layers, lane) = (self.object, self.layers.clone(), self.lane.clone());
            let mut reserve = |target, len| self.back(target, len);
            let covered = cover(batch, first, &object, &lock(&layers), lane.medium(), &mut reserve)?;
            claimed.push((object.offset, covered));
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

    /// Makes it durable and applies it.
    pub fn commit(mut self) -> Result<()> {
        let result = self.publish();
        self.sealed.clear();
        if let Some((writers, _)) = self.writers {
            writers.first.scratch = Some(self.batch);
        }
        result
    }

    fn publish(&mut self) -> Result<()> {
        let Staged { writers: Some((writers, changing)), batch, advances, claimed, sealed, source } = self
        else {
            return Ok(());
        };
        if advances.is_empty() {
            // The primary may have gone back.
            return expect_readings(writers.first.lane.medium());
        }
        if u32::try_from(batch.count()).is_err() {
            let why = "one psync changes less than 256 GiB: psync more often";
            return Err(StoreError::BadSize { size: batch.data_len(), why });
        }
        writers.reserve(batch)?;
        let first = &*writers.first;
        if batch.sealed_len() > first.lane.capacity() {
            first.enlarge_lane(changing, batch.sealed_len())?;
        }
        if claimed.iter().any(|(_, covered)| covered.unproven) && !Mutant::PageUnproven.is_on() {
            first.lane.medium().barrier()?;
        }
        first.lane.commit(changing, batch, advances, *source)?;
        for (slot, sealing) in sealed.drain(..) {
            if let Some(writer) = writers.iter().find(|writer| writer.object.offset == slot) {
                writer.accept_seals(sealing)?;
            }
        }
        for writer in writers.iter_mut() {
            let own = |advance: &&Advance| advance.slot == writer.object.offset;
            if let Some(advance) = advances.iter().find(own) {
                writer.standing = advance.standing;
                writer.direct = Direct::None;
                writer.unsettled = true;
            }
            if writer.based && !claimed.is_empty() {
                let own = claimed.iter().filter(|(slot, _)| *slot == writer.object.offset);
                let mut layers = lock(&writer.layers);
                own.flat_map(|(_, covered)| &covered.pages).for_each(|page| layers.claim(*page));
            }
        }
        Ok(())
    }
}
