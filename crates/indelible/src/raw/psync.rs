#![allow(unsafe_code)]

use super::registry::find;
use super::transactions;
use crate::dirty::Unknown;
use crate::error::{Cause, Result};
use crate::heap::Quiet;
use crate::object::{Core, cut_cores, psync_cores};
use crate::sys::mmap::Protection;
use std::collections::BTreeMap;
use std::sync::PoisonError;

/// Marks `len` bytes at `address` as stored to: see
/// [`Object::mark_dirty`](crate::Object::mark_dirty). Ignores bytes beyond the object, and objects
/// attached for reading.
pub fn mark_dirty(address: *const u8, len: usize) -> Result<()> {
    let found = find("mark stores to", address.addr())?;
    let start = address.addr() - found.start();
    if let Some((marks, _)) = found.core().and_then(|core| core.marks()) {
        marks.mark_pinned(start..start.saturating_add(len));
    }
    Ok(())
}

/// Fills pages of `len` bytes at `address`; returns the bytes present from `address` on: see
/// [`Object::prefault`](crate::Object::prefault).
pub fn prefault(address: *const u8, len: usize) -> Result<usize> {
    let found = find("prefault", address.addr())?;
    let start = address.addr() - found.start();
    found.prefault(start..start.saturating_add(len)).map_err(|cause| found.error("prefault", cause))
}

/// Makes the stores to the object at `address` since its last psync durable, atomically. Ignored
/// for an object attached for reading. Psyncs of one object take turns; others run in parallel.
///
/// # Safety
/// No thread stores to the object until this returns.
pub unsafe fn psync(address: *const u8) -> Result<()> {
    let found = match find("psync", address.addr()) {
        Err(error) => return transactions::psync(address.addr()).unwrap_or(Err(error)),
        Ok(found) => found,
    };
    found.audited("psync")?;
    let Some(mut core) = found.core() else { return Ok(()) };
    let opened = found.closed.open(Protection::Read);
    opened.and_then(|_open| core.psync()).map_err(|cause| found.error("psync", cause))
}

/// As [`psync`], with a consistent cut: other threads may store, allocate and free meanwhile. A
/// heap operation is in the cut as a whole, or not at all.
pub fn psync_cut(address: *const u8) -> Result<()> {
    each("psync", &[address], true)
}

/// Psyncs several objects of one pool atomically. Ignores those attached for reading.
///
/// # Safety
/// As for [`psync`], for every one of them.
pub unsafe fn psync_all(addresses: &[*const u8]) -> Result<()> {
    each("psync together", addresses, false)
}

/// As [`psync_all`], with one consistent cut of all.
pub fn psync_all_cut(addresses: &[*const u8]) -> Result<()> {
    each("psync together", addresses, true)
}

/// Reverts the object at `address`, and its heap, to the last psync: see
/// [`Object::revert`](crate::Object::revert) and [`Heap::revert`](crate::Heap::revert). Ignored for
/// an object attached for reading.
///
/// # Safety
/// No other thread uses the object until this returns; addresses of blocks allocated since are not
/// used any more.
pub unsafe fn revert(address: *const u8) -> Result<()> {
    let found = find("revert", address.addr())?;
    let heap = found.heap.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|heap| heap.options());
    let reverted = found.core().map_or(Ok(()), |mut core| {
        let _open = found.closed.open(Protection::ReadWrite)?;
        core.revert().and(found.closed.again(core.size()))
    });
    reverted.map_err(|cause| found.error("revert", cause))?;
    if let Some(options) = heap {
        found.close_heap();
        // If the last psync was no heap, its next use fails.
        let _ = found.opened(Some(options));
    }
    Ok(())
}

fn each(operation: &'static str, addresses: &[*const u8], cut: bool) -> Result<()> {
    // In the order of addresses, against deadlocks.
    let mut found = BTreeMap::new();
    for address in addresses {
        let attachment = find(operation, address.addr())?;
        attachment.audited(operation)?;
        found.insert(attachment.start(), attachment);
    }
    let heaps = found.values().map(|found| found.heap.read().unwrap_or_else(PoisonError::into_inner));
    let heaps: Vec<_> = heaps.collect();
    let opened = found
        .values()
        .map(|found| found.closed.open(Protection::Read).map_err(|cause| found.error(operation, cause)));
    let _opened: Vec<_> = opened.collect::<Result<_>>()?;
    let mut quiet = Vec::new();
    if cut {
        for (attachment, heap) in found.values().zip(&heaps) {
            let Some(heap) = heap.as_ref() else { continue };
            let held = heap.quiet(attachment.patience());
            quiet.push(held.map_err(|error| attachment.error(operation, Cause::Heap(error)))?);
        }
    }
    let mut guards: Vec<_> = found.values().filter_map(|attachment| attachment.core()).collect();
    let mut cores: Vec<&mut Core> = guards.iter_mut().map(|guard| &mut **guard).collect();
    let Some(first) = found.values().next().filter(|_| !cores.is_empty()) else { return Ok(()) };
    let fixed = || quiet.iter_mut().for_each(Quiet::open);
    let result =
        if cut { cut_cores(&mut cores, false, &mut Unknown, fixed) } else { psync_cores(&mut cores) };
    result.map_err(|cause| first.error(operation, cause))
}
