//! Attachments that a view owns: known by address as all others are, and ended by the view alone.

use super::Permission;
use super::registry::{detach_as, enter_reader, enter_writer, find};
use crate::error::{Cause, Error, Result};
use crate::heap::Growable;
use crate::object::{Core, attach_core, attach_cores, attach_reader};
use crate::pool::Pool;
use crate::sys::fork;
use std::ops::Range;

/// Such an attachment; dropping it detaches. Stores that were not psynced are forgotten.
#[derive(Debug)]
pub(crate) struct Pinned {
    base: usize,
    writable: bool,
    generation: u32,
}

impl Pinned {
    /// First byte of the object.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// Whether it is attached for writing.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// Bytes of the object, as it is now.
    pub(crate) fn len(&self) -> usize {
        find("look up", self.base).map_or(0, |found| found.len())
    }

    /// Marks bytes that are stored to, where tracking does not find that by itself.
    pub(crate) fn stored(&self, range: Range<usize>) {
        if let Ok(found) = find("mark stores to", self.base) {
            found.stored(self.base + range.start..self.base + range.end);
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // A fork has nothing of it, and another thread of its parent may have the registry locked in it.
        if fork::is_stale(self.generation) {
            return;
        }
        let _ = detach_as(std::ptr::without_provenance(self.base), true);
    }
}

fn pinned(pool: &Pool, name: &str, core: Result<Core, Cause>) -> Result<Pinned> {
    let base = core.and_then(|core| enter_writer(name, core, true));
    let base = base.map_err(|cause| failed(pool, name, cause))?.addr().get();
    Ok(Pinned { base, writable: true, generation: fork::generation() })
}

fn failed(pool: &Pool, name: &str, cause: Cause) -> Error {
    Error::new("attach", cause).pool(pool.path()).object(name)
}

/// Attaches `name`, an object without a key.
///
/// # Errors
/// As for [`Pool::attach`] and [`Pool::attach_read`].
pub(crate) fn pin(pool: &Pool, name: &str, permission: Permission) -> Result<Pinned> {
    let inner = pool.inner();
    inner.alive().map_err(|cause| failed(pool, name, cause))?;
    match permission {
        Permission::Write => pinned(pool, name, attach_core(inner, name, b"", None, false)),
        Permission::Read => {
            let core = attach_reader(inner, name, b"", None).map_err(|cause| failed(pool, name, cause))?;
            let base = enter_reader(name, core, true).addr().get();
            Ok(Pinned { base, writable: false, generation: fork::generation() })
        }
    }
}

/// Attaches objects without keys for writing, by one change of the table.
///
/// # Errors
/// No object is attached: the table could not be changed. Of one object alone: as for [`Pool::attach`].
pub(crate) fn pin_all(pool: &Pool, names: &[&str]) -> Result<Vec<Result<Pinned>>> {
    let inner = pool.inner();
    let cores = inner.alive().and_then(|()| attach_cores(inner, names));
    let cores =
        cores.map_err(|cause| Error::new("attach the objects of a view in", cause).pool(pool.path()))?;
    Ok(names.iter().zip(cores).map(|(name, core)| pinned(pool, name, core)).collect())
}
