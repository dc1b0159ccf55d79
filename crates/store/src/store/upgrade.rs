//! Upgrade: converts a pool of format 1 to format 2, in place.
//!
//! FORMAT.md, section 8, has the steps. `old` shows the pool in format 2, in an overlay, and a
//! check refuses damage before anything changes; `drain` writes pending batches to their places, in
//! format 1; `convert` converts the slots. A slot tells its format, so that an interrupted upgrade
//! can continue.
//!
//! Memory: 1 KiB per object, and the pending batches.

mod convert;
mod drain;
mod old;

use crate::error::{Result, StoreError};
use crate::format::superblock::{FEATURE_UPGRADING, SLOTS, SlotFault, Superblock};
use crate::format::{DATA, PAGE, VERSION, v1};
use crate::medium::{Device, LockKey, LockMode, Medium, Overlay, read_struct};
use crate::store::check::Severity;
use crate::store::locks::{Deadline, lock_table};
use crate::store::pool::{Identity, Store, why_unusable, write_superblocks};
use crate::store::repair::lanes_are_free;
use std::sync::Arc;
use std::time::Duration;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

const PATIENCE: Duration = Duration::from_secs(5);

/// Result of an upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upgraded {
    /// The pool's format before.
    pub from: u32,
    /// Objects, hidden ones included.
    pub objects: u64,
    /// Objects recovered after a writer's death.
    pub recovered: u64,
}

/// A pool that is not wholly in this format.
enum Found {
    Ended(Superblock),
    Old(v1::Superblock),
    Begun(Superblock),
}

impl Store {
    /// Converts the pool on `device` to this format. `dry_run`: only tries, in memory. Calls
    /// `progress(done, total)` now and then.
    ///
    /// No other process may have the pool open; the caller ensures what locks of attachments do not
    /// show.
    ///
    /// # Errors
    /// Those of [`Store::open`]; `Held`: an object or lane is in use; `NotSound`: the pool is
    /// damaged, and unchanged. `NoSpace`: no room for the pending batches, or for the table. After
    /// another failure, the next call continues.
    pub fn upgrade(
        device: &Arc<dyn Device>,
        identity: Identity,
        dry_run: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Upgraded> {
        let _alone = if dry_run { None } else { Some(Alone::take(device)?) };
        lanes_are_free(&**device)?;
        if dry_run {
            let overlay: Arc<dyn Device> = Arc::new(Overlay::new(device.clone()));
            return go_on(&overlay, identity, progress);
        }
        go_on(device, identity, progress)
    }
}

fn go_on(
    device: &Arc<dyn Device>,
    identity: Identity,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Upgraded> {
    let mut upgraded = Upgraded { from: v1::VERSION, ..Upgraded::default() };
    let Some(found) = found(&**device)? else { return Ok(Upgraded { from: VERSION, ..upgraded }) };
    // A full medium fails here, before any write.
    device.reserve(0, DATA)?;
    let superblock = match found {
        Found::Ended(superblock) => {
            put_superblock(&**device, superblock, 0)?;
            return Ok(Upgraded { from: VERSION, ..upgraded });
        }
        // A failed write may be visible, and nothing of format 1 durable from here.
        Found::Begun(superblock) => put_superblock(&**device, superblock, FEATURE_UPGRADING)?,
        Found::Old(old) => {
            let drained = drain::drain(device, identity, &old, progress)?;
            (upgraded.objects, upgraded.recovered) = (drained.objects, drained.recovered);
            put_superblock(&**device, old.upgraded(), FEATURE_UPGRADING)?
        }
    };
    upgraded.objects = convert::convert(device, &superblock)?;
    expect_sound(device, &superblock, progress)?;
    put_superblock(&**device, superblock, 0)?;
    Ok(upgraded)
}

fn reserve_slots<'a>(medium: &dyn Medium, slots: impl IntoIterator<Item = &'a u64>) -> Result<()> {
    let mut claimed = None;
    for slot in slots {
        let page = slot / PAGE * PAGE;
        if claimed.replace(page) != Some(page) {
            medium.reserve(page, PAGE.min(medium.len() - page))?;
        }
    }
    Ok(())
}

fn found(medium: &dyn Medium) -> Result<Option<Found>> {
    let mut faults = Vec::new();
    let (mut old, mut begun): (Option<v1::Superblock>, Option<Superblock>) = (None, None);
    let mut current = None;
    for slot in SLOTS {
        if slot + size_of::<Superblock>() as u64 > medium.len() {
            continue;
        }
        let read: v1::Superblock = read_struct(medium, slot)?;
        if read.verify(medium.len()) && old.is_none_or(|old| old.sequence < read.sequence) {
            old = Some(read);
        }
        let read: Superblock = read_struct(medium, slot)?;
        match read.verify(medium.len()) {
            Ok(()) => current = Some(read),
            Err(SlotFault::Upgrading) if begun.is_none_or(|begun| begun.sequence < read.sequence) => {
                begun = Some(read);
            }
            Err(SlotFault::Version(v1::VERSION)) if read.length.get() > medium.len() => {
                faults.push((SlotFault::Geometry, read));
            }
            Err(SlotFault::Version(v1::VERSION)) => faults.push((SlotFault::Checksum, read)),
            Err(fault) => faults.push((fault, read)),
        }
    }
    match (old, current, begun) {
        (Some(old), _, _) => Ok(Some(Found::Old(old))),
        (None, Some(ended), Some(_)) => Ok(Some(Found::Ended(ended))),
        (None, Some(_), None) => Ok(None),
        (None, None, Some(begun)) => Ok(Some(Found::Begun(begun))),
        (None, None, None) => Err(why_unusable(&faults, medium.len())),
    }
}

fn put_superblock(medium: &dyn Medium, mut superblock: Superblock, features: u32) -> Result<Superblock> {
    superblock.features = U32::new(features);
    superblock.set_release();
    write_superblocks(medium, superblock, |slot| match slot.fault {
        None | Some(SlotFault::Upgrading) => true,
        Some(_) => v1::Superblock::read_from_prefix(slot.superblock.as_bytes())
            .is_ok_and(|(old, _)| old.verify(medium.len())),
    })
}

fn expect_sound(
    device: &Arc<dyn Device>,
    superblock: &Superblock,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let overlay = Arc::new(Overlay::new(device.clone()));
    let mut shown = *superblock;
    shown.features = U32::new(0);
    for slot in SLOTS {
        overlay.write(slot, shown.sealed().as_bytes())?;
    }
    expect_no_errors(overlay, progress)
}

fn expect_no_errors(device: Arc<dyn Device>, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let report = Store::check(device, progress)?;
    match report.findings.iter().find(|finding| finding.severity == Severity::Error) {
        Some(finding) => Err(StoreError::NotSound { found: finding.to_string() }),
        None => Ok(()),
    }
}

struct Alone(Arc<dyn Device>);

impl Alone {
    fn take(device: &Arc<dyn Device>) -> Result<Alone> {
        lock_table(&**device, LockMode::Exclusive, &mut Deadline::after(PATIENCE))?;
        Ok(Alone(device.clone()))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.unlock(LockKey::Table);
    }
}
