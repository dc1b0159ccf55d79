//! Far pointers by address: a C program's [`Space`](crate::Space). Targets are attached for reading
//! unless they are attached, and stay so until detached by address. An attachment caches its
//! entries' targets until something is detached.

#![allow(unsafe_code)]

use super::Permission;
use super::place::at;
use super::registry::{Attachment, EPOCH, Link, attach, attached_by_id, find};
use crate::error::{Cause, ErrorKind, FarError, HeapError, Result};
use crate::far::{FarEntry, FarTarget, Rights};
use crate::heap::built_in;
use crate::pool::Pool;
use crate::sys::per_process::PerProcess;
use crate::types::far::{index, offset, pack};
use indelible_store::table::id_name;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLock};

static POOLS: PerProcess<RwLock<Vec<Pool>>> = PerProcess::new();

const FOLLOW: &str = "follow a far pointer from";
const STORE: &str = "store a far pointer in";

/// Adds a pool to search for targets, after earlier ones, until it is [removed](remove_pool).
pub fn add_pool(pool: &Pool) {
    POOLS.inherited().write().unwrap_or_else(PoisonError::into_inner).push(pool.clone());
}

/// Stops searching a pool. Attached objects stay attached.
pub fn remove_pool(pool: &Pool) {
    POOLS.inherited().write().unwrap_or_else(PoisonError::into_inner).retain(|known| known.id() != pool.id());
}

/// The address that a far pointer in the object at `home` leads to, with `len` bytes in the target.
///
/// # Errors
/// `NotAttached`: `home` is in no object. `Dangling`: the pointer is null, its entry is missing, or
/// its object is in no added pool or too short. Those of [`attach`] for reading.
///
/// # Safety
/// As for [`malloc`](super::malloc).
pub unsafe fn follow(home: *const u8, word: u64, len: usize) -> Result<NonNull<u8>> {
    let attachment = find(FOLLOW, home.addr())?;
    let (number, offset) = (index(word), offset(word));
    if offset == 0 {
        return Err(attachment.error(FOLLOW, FarError::Null));
    }
    let epoch = EPOCH.load(Ordering::Acquire);
    let holds = |link: &Link| (offset as usize).checked_add(len).is_some_and(|end| end <= link.len);
    let link = match number {
        0 => Link { base: attachment.base, len: attachment.len(), epoch },
        number => match attachment.link(number).filter(|link| link.epoch == epoch && holds(link)) {
            Some(link) => link,
            None => {
                // SAFETY: the caller's promise.
                let entry = unsafe { at(home) }?.heap.far_entry(number);
                let entry = entry.map_err(|error| attachment.error(FOLLOW, Cause::Heap(error)))?;
                let target = find(FOLLOW, reach(&attachment, &entry)?.addr().get())?;
                let link = Link { base: target.base, len: target.len(), epoch };
                attachment.set_link(number, link);
                link
            }
        },
    };
    match holds(&link) {
        // SAFETY: within the object.
        true => Ok(unsafe { link.base.add(offset as usize) }),
        false => {
            let target = format!("of entry {number}");
            Err(attachment.error(FOLLOW, FarError::Beyond { target, offset, needed: len, len: link.len }))
        }
    }
}

/// Attaches the object for reading if need be.
fn reach(home: &Attachment, entry: &FarEntry) -> Result<NonNull<u8>> {
    let pools = POOLS.inherited().read().unwrap_or_else(PoisonError::into_inner).clone();
    let missing =
        || home.error(FOLLOW, FarError::NoObject { target: entry.target.to_string(), pools: pools.len() });
    let target = match entry.target.id() {
        Ok(id) => Some(id),
        Err((resolver, name)) => match built_in(&pools, resolver, name)? {
            Some(Some(FarTarget::Object(id))) => Some(id),
            _ => None,
        },
    };
    let id = target.ok_or_else(missing)?;
    if let Some(base) = attached_by_id(&id) {
        return Ok(base);
    }
    for pool in &pools {
        match attach(pool, &id_name(&id), Permission::Read, b"") {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            attached => return attached,
        }
    }
    Err(missing())
}

/// A far pointer in the object at `home` to `target` in any attached object, through an entry that
/// is found or added. The next psync of `home`'s object makes both durable.
///
/// # Errors
/// `NotAttached`: one of them is in no object. `NotAHeap`, `HeapFull`, `ReadOnly`, `Damaged`: of
/// `home`'s. `Dangling`: `target` is the first byte of an object, which cannot be pointed at.
///
/// # Safety
/// As for [`malloc`](super::malloc).
pub unsafe fn store(home: *const u8, target: *const u8, rights: Rights) -> Result<u64> {
    let (attachment, to) = (find(STORE, home.addr())?, find(STORE, target.addr())?);
    let offset = (target.addr() - to.start()) as u64;
    if offset == 0 {
        return Err(attachment.error(STORE, FarError::Null));
    }
    if attachment.start() == to.start() {
        return Ok(pack(0, offset));
    }
    // SAFETY: the caller's promise.
    let place = unsafe { at(home) }?;
    let entry = FarEntry { target: FarTarget::Object(to.id), rights };
    let mut number = place.heap.far_index(&entry);
    if matches!(number, Err(HeapError::Full { .. })) {
        let room =
            place.heap.malloc_in(place.attachment, 4 * 4096).map_err(|error| place.failed(STORE, error))?;
        // SAFETY: a block that no other code knows of.
        unsafe { place.heap.free(room.addr().get()) }.map_err(|error| place.failed(STORE, error))?;
        number = place.heap.far_index(&entry);
    }
    Ok(pack(place.done(STORE, number)?, offset))
}
