//! The anchor of an attached sealed object: asked before a byte of the object is used, told of the newest state now and then.
//!
//! Invariants:
//! 1. The anchor is told of durable states only: those that the seals of this attachment are in.
//! 2. It is told that the object was left while this process still has the object for itself.

use crate::error::{AnchorError, Cause};
use crate::pool::Anchor;
use indelible_store::error::SealError;
use indelible_store::format::entry::FLAG_BASE;
use indelible_store::seal::AnchorRecord;
use indelible_store::store::{SealedPages, Unlocked, Writer};
use indelible_store::table::Located;
use std::sync::Arc;
use std::time::Instant;

/// A sealed object's key as it was found, and its anchor.
pub(crate) struct Opened {
    pub(super) unlocked: Unlocked,
    pub(super) anchor: Option<Arc<dyn Anchor>>,
}

impl std::ops::Deref for Opened {
    type Target = Unlocked;

    fn deref(&self) -> &Unlocked {
        &self.unlocked
    }
}

/// The anchor of an object that this process writes.
pub(super) struct Anchored {
    anchor: Arc<dyn Anchor>,
    pages: Arc<SealedPages>,
    told: Instant,
}

impl Anchored {
    /// Asks the anchor, and tells it that the object is written from now on. `None`: the object has none.
    pub(super) fn begin(
        writer: &mut Writer,
        anchor: Option<&Arc<dyn Anchor>>,
    ) -> Result<Option<Anchored>, Cause> {
        let Some(pages) = writer.sealed_pages() else { return Ok(None) };
        check(&pages, anchor)?;
        Anchored::set(writer, anchor)
    }

    /// As [`begin`](Anchored::begin), and takes the present state for the newest.
    pub(super) fn set(
        writer: &mut Writer,
        anchor: Option<&Arc<dyn Anchor>>,
    ) -> Result<Option<Anchored>, Cause> {
        let (Some(pages), Some(anchor)) = (writer.sealed_pages(), anchor) else { return Ok(None) };
        // The record comes first: an object that says that it has an anchor has a record there.
        let mut anchored = Anchored { anchor: anchor.clone(), pages, told: Instant::now() };
        anchored.tell(false)?;
        writer.set_anchored(true)?;
        Ok(Some(anchored))
    }

    /// Tells the anchor of the present state.
    pub(super) fn tell(&mut self, left: bool) -> Result<(), Cause> {
        let record = AnchorRecord { left, ..self.pages.state() };
        self.anchor.write(&record.to_string()).map_err(AnchorError::written)?;
        self.told = Instant::now();
        Ok(())
    }

    /// Tells it that the object is left, and detaches it.
    pub(super) fn leave(anchored: Option<Anchored>, writer: Writer) -> Result<(), Cause> {
        let told = match anchored {
            // Of a psync that failed nobody knows which state it left.
            Some(mut anchored) if !writer.is_poisoned() => anchored.tell(true),
            _ => Ok(()),
        };
        writer.detach()?;
        told
    }

    /// Tells it if it is time. The psync is done: if the anchor cannot be reached, the next one tries again, and the detach says so.
    pub(super) fn after_psync(&mut self) {
        if self.told.elapsed() >= self.anchor.interval() {
            let _ = self.tell(false);
        }
    }
}

/// Refuses a state that is not the one that the anchor was told, or a later one.
pub(super) fn check(pages: &SealedPages, anchor: Option<&Arc<dyn Anchor>>) -> Result<(), Cause> {
    let Some(anchor) = anchor else {
        let needed = || Cause::Store(SealError::AnchorNeeded.into());
        return if pages.is_anchored() { Err(needed()) } else { Ok(()) };
    };
    let record = anchor.read().map_err(AnchorError::read)?;
    let record = record.map(|record| AnchorRecord::parse(&record)).transpose()?;
    Ok(AnchorRecord::judge(&pages.state(), pages.is_anchored(), record.as_ref())?)
}

/// As [`check`], for a reader. A snapshot is older by intention, and may be asked for without the anchor.
pub(super) fn check_reader(
    object: &Located,
    pages: &SealedPages,
    anchor: Option<&Arc<dyn Anchor>>,
) -> Result<(), Cause> {
    if anchor.is_none() && object.entry.has(FLAG_BASE) { Ok(()) } else { check(pages, anchor) }
}
