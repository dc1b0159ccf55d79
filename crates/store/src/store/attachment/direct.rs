//! Direct writes: ranges that no psync covered go straight to the primary, to write loaded data
//! once; a psync publishes them.
//!
//! A psync publishes a range only after a barrier behind its last write ([`Written`]). A direct
//! write that ended without one is zeroed durably before any comparison, or begun again.
//!
//! Invariants, beside `Standing` (a crash zeroes announced and unpublished bytes):
//! 1. Between `published` and `standing.direct` the primary holds zeros, or the bytes that
//!    `Written` proves, or `direct` is `Open`.

use super::unlocked::expect_plain;
use super::writer::Writer;
use super::written::{Direct, Written};
use crate::error::{Result, StoreError};
use crate::format::batch::kind;
use crate::medium::Medium;
use crate::mutant::Mutant;
use crate::recovery::{Standing, clear, clear_left};
use crate::store::lanes::{Advance, Changing};

impl Writer {
    /// Announces direct writes of bytes up to `to` that no psync covered. Until published, a crash
    /// zeroes the range.
    ///
    /// # Errors
    /// `HasBase`, `Refused` of a sealed object: nothing happened. `Poisoned`, or a failure of the
    /// medium: the object is poisoned.
    pub fn begin_direct(&mut self, to: u64) -> Result<()> {
        self.check()?;
        let changing = self.change()?;
        if self.based {
            return Err(StoreError::HasBase);
        }
        expect_plain(&self.object, "direct writes", "psync them")?;
        self.dissolve_page_cache(&changing)?;
        self.direct = Direct::Open;
        // Once announced, the extent does not become a base.
        self.announce(changing, Standing { direct: to.max(self.standing.direct), ..self.standing })
    }

    /// Writes announced bytes.
    ///
    /// # Errors
    /// `NoSpace`, `HeldStill`: nothing was published; the direct write may begin again.
    /// `NotAnnounced`. `Poisoned`, or a failure of the medium: the object is poisoned.
    pub fn write_direct(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        match (&self.direct, self.announced()) {
            (Direct::Open, Some((from, to))) if from <= offset && end <= to => {}
            _ => return Err(StoreError::NotAnnounced { end }),
        }
        let target = self.object.entry.primary_offset() + offset;
        self.back(target, bytes.len() as u64)?;
        let _changing = self.lane.change()?;
        Ok(self.lane.medium().write(target, bytes)?)
    }

    /// Makes the direct writes durable, for the next psync to publish.
    ///
    /// # Errors
    /// A failure of the medium: the object is poisoned.
    pub fn end_direct(&mut self) -> Result<()> {
        if let Direct::Open = self.direct {
            let to = self.announced().map_or(0, |(_, to)| to);
            self.direct = Direct::Written(Written::by_barrier(self.lane.medium(), to)?);
        }
        Ok(())
    }

    pub(super) fn publishable(&self) -> Option<u64> {
        match &self.direct {
            Direct::Written(written) => Some(written.to()),
            Direct::Open if Mutant::OpenDirectPublished.is_on() => self.announced().map(|(_, to)| to),
            _ => None,
        }
    }

    pub(super) fn take_back_unproven(&mut self) -> Result<()> {
        match self.direct {
            Direct::Open if !Mutant::OpenDirectPublished.is_on() => self.cancel_direct(),
            _ => Ok(()),
        }
    }

    pub(super) fn cancel_direct(&mut self) -> Result<()> {
        let Some((from, to)) = self.announced() else {
            self.direct = Direct::None;
            return Ok(());
        };
        let changing = self.change()?;
        self.dissolve_page_cache(&changing)?;
        let medium = self.lane.medium();
        if !Mutant::DirectKept.is_on() {
            let clear = if let Direct::Left = self.direct { clear_left } else { clear };
            clear(medium, &self.object.entry, from, to)?;
        }
        medium.barrier()?;
        self.backed.clear();
        self.announce(changing, Standing { direct: 0, ..self.standing })?;
        self.direct = Direct::None;
        Ok(())
    }

    fn announced(&self) -> Option<(u64, u64)> {
        let Standing { published, direct, .. } = self.standing;
        let to = direct.min(self.object.entry.extent_len());
        (published < to).then_some((published, to))
    }

    fn announce(&mut self, mut changing: Changing, standing: Standing) -> Result<()> {
        let mut batch = self.scratch.take().unwrap_or_default();
        batch.clear();
        batch.begin(kind::INTENT, self.object.offset, self.object.entry.binding.get());
        batch.set_progress(standing.published, standing.psyncs, standing.direct);
        let result = self.lane.commit(
            &mut changing,
            &mut batch,
            &[Advance::new(&self.object, standing, self.page_cache.clone())],
            None,
        );
        self.scratch = Some(batch);
        result.map_err(StoreError::of_step)?;
        self.standing = standing;
        self.unsettled = true;
        Ok(())
    }
}
