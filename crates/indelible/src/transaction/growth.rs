//! Grows an attached transactional object whose heap lacks room for a block
//! (docs/decisions/0061-transactions-in-languages.md). The transaction is undone, the object grows
//! durably while none of the pool runs in this process, and the transaction is run again.

#![allow(unsafe_code)]

use super::attached::{Attached, Kind, Memory};
use super::home::Home;
use super::run::alone;
use crate::error::{Cause, Limit};
use crate::events;
use crate::heap::{Growable, grow_object};
use crate::memory::MemoryError;
use crate::sys::PAGE;
use indelible_store::Mutant;
use indelible_store::error::StoreError;
use indelible_store::format::ecc::with_check_words;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU8, Ordering};

const ALIGN: usize = PAGE;

impl Home {
    /// Returns the limit met if the heap still lacks room.
    pub(crate) fn grow(&self, needed: usize) -> Result<Option<Limit>, Cause> {
        alone(&self.attached, || Ok(self.grow_alone(needed)))
    }

    pub(super) fn grow_alone(&self, needed: usize) -> Option<Limit> {
        let limit = grow_object(&self.attached, (needed, ALIGN), usize::MAX);
        self.words.lengthen(self.attached.size());
        limit
    }
}

impl Growable for Attached {
    fn mapped(&self) -> usize {
        self.size()
    }

    fn grow(&self, size: usize) -> Result<(), Limit> {
        self.lengthen(size).map_err(|cause| Limit::from(&cause))
    }
}

impl Attached {
    /// No other transaction of the pool runs in this process.
    fn lengthen(&self, size: usize) -> Result<(), Cause> {
        self.pool.alive()?;
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Memory { view, closed, shown, .. }) = memory.as_mut() else {
            return Err(Cause::Detached);
        };
        let room = view.room() as u64;
        let occupied = if self.pairs().is_some() { with_check_words(size as u64) } else { Some(size as u64) };
        let (old, occupied) = (self.size(), occupied.unwrap_or(u64::MAX));
        let needed = occupied.checked_next_multiple_of(PAGE as u64).unwrap_or(u64::MAX);
        if needed > room {
            return Err(StoreError::NoAddresses { needed, largest: room }.into());
        }
        if occupied <= self.pool.media.device().len() {
            match view {
                Kind::Own(_) => {}
                Kind::Seen(view) => view.reserve(needed as usize)?,
                // Before the pool states the new length, which it may do without a report.
                Kind::Kept(area) => area.reserve(needed as usize).map_err(MemoryError::from)?,
            }
            closed.keep(needed as usize)?;
        }
        let grown = self.space.commits().grow(self.slot(), occupied, *shown);
        let entry = grown.inspect_err(|_| closed.release())?.entry;
        // An extent that is no longer the primary stays while its pages are shown.
        *shown = shown.filter(|extent| *extent == entry.primary_offset());
        let len = entry.content_len() as usize;
        match view {
            Kind::Own(view) => {
                closed.grow(len, None)?;
                view.grow(len, *shown)?;
            }
            Kind::Seen(view) => view.grow(closed, len)?,
            Kind::Kept(area) => {
                let shown = if self.readable_at().is_some() {
                    Some(&mut *closed)
                } else {
                    closed.grow(len, None)?;
                    None
                };
                area.grow(shown, len).map_err(MemoryError::from)?;
            }
        }
        if self.pairs().is_none() {
            self.clear_behind(old);
        }
        if !Mutant::GrowthUntold.is_on() {
            self.space.lengthen(self.slot(), len);
        }
        let size = entry.usable(entry.size.get());
        self.len.store(size as usize, Ordering::Release);
        if let Some(exposed) = self.exposed() {
            exposed.lengthen(size as usize);
        }
        events::grown(self.name(), size);
        Ok(())
    }

    fn clear_behind(&self, end: usize) {
        for at in end..end.next_multiple_of(PAGE) {
            let byte = self.base().cast_mut().wrapping_add(at);
            // SAFETY: in the view's last page, behind all cells; no other thread runs a
            // transaction.
            let byte = unsafe { AtomicU8::from_ptr(byte) };
            if byte.load(Ordering::Relaxed) != 0 {
                byte.store(0, Ordering::Relaxed);
            }
        }
    }
}
