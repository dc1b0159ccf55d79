//! Shared objects by address: waiting, waking and queues, for C.

use crate::error::{Cause, Error, Result};
use crate::pool::Pool;
use crate::shared::{Queue, QueueOptions, SharedObject, Word};
use crate::sys::per_process::PerProcess;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

static OBJECTS: PerProcess<RwLock<BTreeMap<usize, Vec<SharedObject>>>> = PerProcess::new();

/// Attaches an object of the class shared; returns its first byte.
pub fn attach(pool: &Pool, name: &str, key: &[u8]) -> Result<NonNull<u8>> {
    let object = pool.attach_shared_with_key(name, key)?;
    let base = object.as_ptr();
    let mut objects = OBJECTS.inherited().write().unwrap_or_else(PoisonError::into_inner);
    let attached = objects.entry(base.addr()).or_default();
    attached.retain(|other| other.check().is_ok());
    attached.push(object);
    Ok(NonNull::new(base).unwrap_or(NonNull::dangling()))
}

pub(super) fn detach(address: usize) -> Option<Result<()>> {
    let mut objects = OBJECTS.inherited().write().unwrap_or_else(PoisonError::into_inner);
    let attached = objects.get_mut(&address)?;
    let last = attached.pop();
    if attached.is_empty() {
        objects.remove(&address);
    }
    drop(objects);
    if let Some(last) = last {
        last.detach();
    }
    Some(Ok(()))
}

fn find(operation: &'static str, address: usize) -> Result<(SharedObject, usize)> {
    let objects = OBJECTS.inherited().read().unwrap_or_else(PoisonError::into_inner);
    let found = objects.range(..=address).next_back().and_then(|(base, attached)| {
        let object = attached.last()?;
        (address - base < object.len()).then(|| (object.clone(), address - base))
    });
    found.ok_or_else(|| Error::new(operation, Cause::NotAttached(address)))
}

/// As [`wait_any`](crate::wait_any()), by addresses.
pub fn wait_any(words: &[(*const u32, u32)], timeout: Option<Duration>) -> Result<Option<usize>> {
    let found = words.iter().map(|(word, _)| find("wait for", word.addr())).collect::<Result<Vec<_>>>()?;
    let expected = found.iter().zip(words).map(|((object, offset), (_, expected))| {
        let word: Word<'_> = object.word(*offset)?;
        Ok((word, *expected))
    });
    crate::shared::wait_any(&expected.collect::<Result<Vec<_>>>()?, timeout)
}

/// As [`Word::wake`], by address.
pub fn wake(word: *const u32, most: u32) -> Result<usize> {
    let (object, offset) = find("wake those who wait for", word.addr())?;
    object.word(offset)?.wake(most)
}

/// As [`SharedObject::queue`], at an address.
pub fn queue(address: *const u8, options: &QueueOptions) -> Result<Queue> {
    let (object, offset) = find("open a queue in", address.addr())?;
    object.queue(offset, options)
}
