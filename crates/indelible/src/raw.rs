//! Objects by address: the operations of the paper's Table I, as a C program sees them.
//!
//! An attached object is known by its first byte, to every thread of the process (S0.13, S0.16). The
//! caller keeps the rules that [`Object`](crate::Object) has the compiler keep.

#![allow(unsafe_code)]

use crate::error::{Cause, Error, Result};
use crate::object::{Core, ReadCore, attach_core, attach_reader, psync_cores};
use crate::pool::Pool;
use crate::sys::fork;
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, RwLock};

/// What an attach asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Loads.
    Read,
    /// Loads and stores.
    Write,
}

#[derive(Clone)]
enum Attached {
    Writer(Arc<Mutex<Core>>),
    /// The count is of attaches: each is detached once.
    Reader(Arc<ReadCore>, usize),
}

struct Slot {
    attached: Attached,
    name: String,
    generation: u32,
}

/// Attached objects by address.
static ATTACHED: RwLock<BTreeMap<usize, Slot>> = RwLock::new(BTreeMap::new());

/// Attaches `name` and returns its address.
///
/// # Errors
/// As for [`Pool::attach`] and [`Pool::attach_read`].
pub fn attach(pool: &Pool, name: &str, permission: Permission, key: &[u8]) -> Result<NonNull<u8>> {
    let failed = |cause: Cause| Error::new("attach", cause).pool(pool.path()).object(name);
    let inner = pool.inner();
    inner.alive().map_err(failed)?;
    let (base, attached) = match permission {
        Permission::Write => {
            let core = attach_core(inner, name, key).map_err(failed)?;
            let base = core.shadow().map_err(failed)?.base();
            (base, Attached::Writer(Arc::new(Mutex::new(core))))
        }
        Permission::Read => {
            let core = attach_reader(inner, name, key).map_err(failed)?;
            let base = NonNull::new(core.base().cast_mut()).unwrap_or(NonNull::dangling());
            (base, Attached::Reader(core, 1))
        }
    };
    let mut all = ATTACHED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let address = base.addr().get();
    let before =
        all.get(&address).filter(|slot| !fork::is_stale(slot.generation)).map(|slot| slot.attached.clone());
    let attached = match (before, attached) {
        (Some(Attached::Reader(core, count)), Attached::Reader(..)) => Attached::Reader(core, count + 1),
        (_, attached) => attached,
    };
    all.insert(address, Slot { attached, name: name.to_owned(), generation: fork::generation() });
    Ok(base)
}

/// Ends an attachment. The bytes become inaccessible (S0.15); what was not psynced is forgotten.
///
/// # Errors
/// `NotAttached` if no attached object begins at `address`.
pub fn detach(address: *const u8) -> Result<()> {
    let mut all = ATTACHED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let key = address.addr();
    match all.get_mut(&key) {
        Some(slot) if fork::is_stale(slot.generation) => return Err(Error::new("detach", Cause::Forked)),
        Some(Slot { attached: Attached::Reader(_, count), .. }) if *count > 1 => {
            *count -= 1;
            return Ok(());
        }
        Some(_) => {}
        None => return Err(Error::new("detach", Cause::NotAttached(key))),
    }
    let Some(slot) = all.remove(&key) else { return Ok(()) };
    drop(all);
    match slot.attached {
        Attached::Writer(core) => {
            let mut core = core.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            core.detach().map_err(|cause| Error::new("detach", cause).object(&slot.name))
        }
        Attached::Reader(..) => Ok(()),
    }
}

/// Names bytes of the object at `address` that were stored to. Only the tracking rung `named` needs it.
///
/// # Errors
/// `NotAttached`.
pub fn note(address: *const u8, range: Range<usize>) -> Result<()> {
    let core = {
        let all = ATTACHED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        match all.get(&address.addr()) {
            Some(Slot { attached: Attached::Writer(core), .. }) => core.clone(),
            Some(_) => return Ok(()),
            None => return Err(Error::new("note stores to", Cause::NotAttached(address.addr()))),
        }
    };
    let core = core.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    core.note(range);
    Ok(())
}

/// Makes the stores to the object at `address` since its last psync durable, as one step (S0.17, S0.18).
/// Ignored for an object attached for reading. Several threads may psync different objects at once;
/// psyncs of one object take turns.
///
/// # Errors
/// `NotAttached`, and those of [`Object::psync`](crate::Object::psync).
///
/// # Safety
/// No thread stores to the object until this returns.
pub unsafe fn psync(address: *const u8) -> Result<()> {
    each("psync", &[address], false)
}

/// As [`psync`], with a consistent cut: other threads may store meanwhile.
///
/// # Errors
/// As for [`psync`].
pub fn psync_cut(address: *const u8) -> Result<()> {
    each("psync", &[address], true)
}

/// psync of several objects of one pool as one atomic step. Those attached for reading are ignored.
///
/// # Errors
/// As for [`psync`].
///
/// # Safety
/// As for [`psync`], for every one of them.
pub unsafe fn psync_all(addresses: &[*const u8]) -> Result<()> {
    each("psync together", addresses, false)
}

fn each(operation: &'static str, addresses: &[*const u8], cut: bool) -> Result<()> {
    let mut found: BTreeMap<usize, (Arc<Mutex<Core>>, String)> = BTreeMap::new();
    {
        let all = ATTACHED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        for address in addresses.iter().map(|address| address.addr()) {
            match all.get(&address) {
                Some(slot) if fork::is_stale(slot.generation) => {
                    return Err(Error::new(operation, Cause::Forked));
                }
                Some(Slot { attached: Attached::Writer(core), name, .. }) => {
                    found.insert(address, (core.clone(), name.clone()));
                }
                Some(_) => {}
                None => return Err(Error::new(operation, Cause::NotAttached(address))),
            }
        }
    }
    // In the order of addresses, so that two threads cannot wait for each other.
    let mut guards: Vec<_> = found
        .values()
        .map(|(core, _)| core.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .collect();
    let mut cores: Vec<&mut Core> = guards.iter_mut().map(|guard| &mut **guard).collect();
    if cores.is_empty() {
        return Ok(());
    }
    psync_cores(&mut cores, cut).map_err(|cause| {
        let error = Error::new(operation, cause);
        match found.values().next() {
            Some((_, name)) => error.object(name),
            None => error,
        }
    })
}
