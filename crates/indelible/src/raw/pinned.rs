//! Attachments of a view: known by address, ended by the view alone.

#![allow(unsafe_code)]

use super::Permission;
use super::detach::{detach_as, detach_of_view};
use super::registry::{Mapping, enter_reader, enter_writer, find, is_attached_once};
use crate::error::{Cause, Error, Result, ViewError};
use crate::heap::Growable;
use crate::object::{Attach, Core, attach_core, attach_cores, attach_reader};
use crate::pool::Pool;
use crate::protection::Domain;
use crate::sys::fork;
use crate::sys::mmap::Protection;
use std::ops::Range;
use std::sync::Arc;

/// Unpsynced stores are lost.
#[derive(Debug)]
pub(crate) struct Pinned {
    base: usize,
    writable: bool,
    generation: u32,
}

impl Pinned {
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    pub(crate) fn len(&self) -> usize {
        find("look up", self.base).map_or(0, |found| found.len())
    }

    /// Closes the pages to all threads without the domain.
    ///
    /// # Errors
    /// `Held`: others of this process load from the object. `Unsuitable`: closing would disturb
    /// page protection, which finds its stores. `Io`: pages may be open to all threads.
    ///
    /// # Safety
    /// Only threads that have the domain open use references to its bytes.
    pub(crate) unsafe fn close_in(&self, domain: &Arc<Domain>) -> Result<()> {
        let found = find("close", self.base)?;
        let (shared, most) = match &found.mapping {
            Mapping::Writer(_) => (None, Protection::ReadWrite),
            Mapping::Reader(core) => (Some(core), Protection::Read),
            Mapping::Beside(_) | Mapping::Apart(_) => return Err(found.error("close", ViewError::Shared)),
        };
        if shared.is_some_and(|core| !is_attached_once(self.base) || !core.keep_alone()) {
            return Err(found.error("close", ViewError::Shared));
        }
        if found.core().is_some_and(|core| core.is_protected()) {
            return Err(found.error("close", ViewError::Tracked));
        }
        // SAFETY: the pages of the attachment; the caller's promise.
        let closed = unsafe { found.closed.set(domain, (self.base, found.len()), most) };
        closed.map_err(|cause| found.error("close", cause))
    }

    pub(crate) fn stored(&self, range: Range<usize>) {
        if let Ok(found) = find("mark stores to", self.base) {
            found.stored(self.base + range.start..self.base + range.end);
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A fork owns nothing of it, and its parent's other thread may have locked the registry.
        if fork::is_stale(self.generation) {
            return;
        }
        let _ = detach_as(std::ptr::without_provenance(self.base), true);
    }
}

pub(crate) fn unpin_all(all: Vec<Pinned>) {
    let bases = all.iter().filter(|pinned| !fork::is_stale(pinned.generation)).map(|pinned| pinned.base);
    let bases: Vec<usize> = bases.collect();
    all.into_iter().for_each(std::mem::forget);
    detach_of_view(bases);
}

fn pinned(pool: &Pool, name: &str, core: Result<Core, Cause>) -> Result<Pinned> {
    let base = core.and_then(|core| enter_writer(name, core, true));
    let base = base.map_err(|cause| failed(pool, name, cause))?.addr().get();
    Ok(Pinned { base, writable: true, generation: fork::generation() })
}

fn failed(pool: &Pool, name: &str, cause: Cause) -> Error {
    Error::new("attach", cause).pool(pool.path()).object(name)
}

pub(crate) fn pin(pool: &Pool, name: &str, permission: Permission) -> Result<Pinned> {
    let inner = pool.inner();
    inner.alive().map_err(|cause| failed(pool, name, cause))?;
    match permission {
        Permission::Write => pinned(pool, name, attach_core(inner, name, &Attach::with_key(b""))),
        Permission::Read => {
            let core = attach_reader(inner, name, &Attach::with_key(b""))
                .map_err(|cause| failed(pool, name, cause))?;
            let base = enter_reader(name, core, true).addr().get();
            Ok(Pinned { base, writable: false, generation: fork::generation() })
        }
    }
}

/// For writing, by one change of the table; if that fails, none.
pub(crate) fn pin_all(pool: &Pool, names: &[&str]) -> Result<Vec<Result<Pinned>>> {
    let inner = pool.inner();
    let cores = inner.alive().and_then(|()| attach_cores(inner, names));
    let cores =
        cores.map_err(|cause| Error::new("attach the objects of a view in", cause).pool(pool.path()))?;
    Ok(names.iter().zip(cores).map(|(name, core)| pinned(pool, name, core)).collect())
}
