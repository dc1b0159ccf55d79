//! The anchor of an attached sealed object.
//!
//! Invariants:
//!
//! 1. The anchor is told of durable states only: those of this attachment's seals.
//! 2. For an anchor with a counter, the record precedes the counter, so a death between them leaves
//!    a record that counts one more.
//! 3. It is told that the object was left while this process still has the object locked.

use crate::error::{AnchorError, Cause};
use crate::pool::Anchor;
use indelible_store::error::SealError;
use indelible_store::format::entry::FLAG_BASE;
use indelible_store::seal::AnchorRecord;
use indelible_store::store::{SealedPages, Unlocked, Writer};
use indelible_store::table::Located;
use std::sync::Arc;
use std::time::Instant;

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

pub(super) struct Anchored {
    anchor: Arc<dyn Anchor>,
    pages: Arc<SealedPages>,
    told: Instant,
}

impl Anchored {
    pub(super) fn begin(
        writer: &mut Writer,
        anchor: Option<&Arc<dyn Anchor>>,
    ) -> Result<Option<Anchored>, Cause> {
        let Some(pages) = writer.sealed_pages() else { return Ok(None) };
        check(&pages, anchor, pages.is_anchored())?;
        Anchored::start(writer, anchor, !pages.is_anchored())
    }

    pub(super) fn set(
        writer: &mut Writer,
        anchor: Option<&Arc<dyn Anchor>>,
    ) -> Result<Option<Anchored>, Cause> {
        Anchored::start(writer, anchor, true)
    }

    fn start(
        writer: &mut Writer,
        anchor: Option<&Arc<dyn Anchor>>,
        first: bool,
    ) -> Result<Option<Anchored>, Cause> {
        let (Some(pages), Some(anchor)) = (writer.sealed_pages(), anchor) else { return Ok(None) };
        if let Some(counter) = anchor.counter().filter(|_| first) {
            counter.define().map_err(AnchorError::written)?;
        }
        // The record comes first: an object marked as anchored has a record.
        let mut anchored = Anchored { anchor: anchor.clone(), pages, told: Instant::now() };
        anchored.tell(false)?;
        writer.set_anchored(true)?;
        Ok(Some(anchored))
    }

    pub(super) fn tell(&mut self, left: bool) -> Result<(), Cause> {
        let mut record = AnchorRecord { left, ..self.pages.state() };
        let counter = self.anchor.counter();
        if let Some(counter) = counter {
            let next = counter.value().map_err(AnchorError::read)?.saturating_add(1);
            record = self.pages.counted(record, next)?;
        }
        self.anchor.write(&record.to_string()).map_err(AnchorError::written)?;
        if let Some(counter) = counter {
            counter.increment().map_err(AnchorError::written)?;
        }
        self.told = Instant::now();
        Ok(())
    }

    pub(super) fn leave(anchored: Option<Anchored>, writer: Writer) -> Result<(), Cause> {
        let told = match anchored {
            Some(mut anchored) if !writer.is_poisoned() => anchored.tell(true),
            _ => Ok(()),
        };
        writer.detach()?;
        told
    }

    pub(super) fn leave_changed(anchored: Option<Anchored>, writer: Writer) -> Result<(), Cause> {
        let told = anchored.map_or(Ok(()), |mut anchored| anchored.tell(true));
        let _ = writer.detach();
        told.map_err(AnchorError::after_a_change)
    }

    /// A failure is retried by a later psync, and reported by the detach.
    pub(super) fn after_psync(&mut self) {
        if self.told.elapsed() >= self.anchor.interval() {
            let _ = self.tell(false);
        }
    }
}

/// A writer changes a record once per interval.
const LOOKS: usize = 16;

pub(super) struct Told {
    record: AnchorRecord,
    counter: Option<u64>,
}

pub(super) fn ask(anchor: &dyn Anchor) -> Result<Option<Told>, Cause> {
    let record = || -> Result<Option<AnchorRecord>, Cause> {
        let record = anchor.read().map_err(AnchorError::read)?;
        Ok(record.map(|record| AnchorRecord::parse(&record)).transpose()?)
    };
    let Some(counter) = anchor.counter() else {
        return Ok(record()?.map(|record| Told { record, counter: None }));
    };
    for _ in 0..LOOKS {
        let Some(before) = record()? else { return Ok(None) };
        let value = counter.value().map_err(AnchorError::read)?;
        if record()? == Some(before) {
            return Ok(Some(Told { record: before, counter: Some(value) }));
        }
    }
    let why = "its record is another one each time that it is read: ask again, or see what answers for it";
    Err(Cause::Store(SealError::BadAnchor { why }.into()))
}

fn proved(told: Option<&Told>, pages: &SealedPages) -> Result<Option<AnchorRecord>, Cause> {
    let Some(Told { record, counter }) = told else { return Ok(None) };
    match counter {
        Some(value) if record.id == pages.state().id => pages.judge_count(record, *value)?,
        None if record.count.is_some() => {
            let why = "its record is that of an anchor with a counter: give the counter with it";
            return Err(Cause::Store(SealError::BadAnchor { why }.into()));
        }
        _ => {}
    }
    Ok(Some(*record))
}

fn check(pages: &SealedPages, anchor: Option<&Arc<dyn Anchor>>, recorded: bool) -> Result<(), Cause> {
    let Some(anchor) = anchor else {
        let needed = || Cause::Store(SealError::AnchorNeeded.into());
        return if pages.is_anchored() { Err(needed()) } else { Ok(()) };
    };
    let record = proved(ask(&**anchor)?.as_ref(), pages)?;
    Ok(AnchorRecord::judge(&pages.state(), recorded, record.as_ref())?)
}

/// For a reader: an anchor without a record proves nothing, and snapshots need none.
pub(super) fn check_reader(
    object: &Located,
    pages: &SealedPages,
    anchor: Option<&Arc<dyn Anchor>>,
) -> Result<(), Cause> {
    if anchor.is_none() && object.entry.has(FLAG_BASE) { Ok(()) } else { check(pages, anchor, true) }
}

/// For a state read beside a writer, who may have told the anchor of later ones: not older than
/// `before`.
pub(super) fn check_beside(
    object: &Located,
    pages: &SealedPages,
    anchor: Option<&Arc<dyn Anchor>>,
    before: Option<&Told>,
) -> Result<(), Cause> {
    let (Some(anchor), Some(before)) = (anchor, proved(before, pages)?) else {
        return check_reader(object, pages, anchor);
    };
    let (state, anchored) = (pages.state(), pages.is_anchored());
    let after = proved(ask(&**anchor)?.as_ref(), pages)?;
    if after != Some(before) {
        AnchorRecord::judge(&state, anchored, Some(&AnchorRecord { left: false, ..before }))?;
    }
    if after.is_some_and(|after| after.version > state.version && after != before) {
        return Ok(());
    }
    Ok(AnchorRecord::judge(&state, anchored, after.as_ref())?)
}
