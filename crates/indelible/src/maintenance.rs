//! Check, repair, upgrade and inspection. Each call opens the medium anew, so that its locks
//! conflict with this process's open pools as with another process's.

use crate::backing::{Identity, Origin};
use crate::contents::Contents;
use crate::error::{Cause, Error, ErrorKind, Result};
use crate::media::{self, Access, Media};
use crate::memory;
use crate::pool::{Pool, PoolOptions, identity, living_writer, memory_place, patiently};
pub use indelible_store::error::Part;
use indelible_store::error::StoreError;
use indelible_store::format::entry::CLASS_SHARED;
use indelible_store::format::superblock::Superblock;
use indelible_store::medium::{Device, LockKey};
use indelible_store::store::Store;
pub use indelible_store::store::{
    Finding, RepairAction, RepairOptions, Report, Severity, SuperblockSlot, Upgraded,
};
use indelible_store::table::Located;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Verifies the whole pool at `path` without changes; programs may have it open. Calls
/// `progress(done, total)` now and then.
///
/// # Errors
/// `NoPool`, `NotAPool`, `Version`: there is nothing to check. `Busy`: a process holds the table
/// for long. Damage is in the report instead.
pub fn check(
    path: impl AsRef<Path>,
    options: &PoolOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Report> {
    let path = path.as_ref();
    let check = |access, progress: &mut dyn FnMut(u64, u64)| {
        run("check", path, options, access, |media| {
            let mut report = Store::check(media.device().clone(), progress)?;
            let _ = note_no_spare(media.device(), &mut report);
            if let Ok(store) = Store::open(media.device().clone(), identity()) {
                let _ = note_living_writers(&store, media.device(), &mut report);
                let _ = judge_contents(&store, media.device(), &mut report);
            }
            Ok(report)
        })
    };
    match check(Access::ReadOnly, progress) {
        // Others change the table all the time; a process that may write may lock it.
        Err(error) if error.kind() == ErrorKind::Busy => match check(Access::ReadWrite, progress) {
            Err(denied) if denied.kind() == ErrorKind::ReadOnly => Err(error),
            done => done,
        },
        done => done,
    }
}

fn note_no_spare(device: &Arc<dyn Device>, report: &mut Report) -> Result<(), StoreError> {
    if let Some(len) = Store::len_without_spare(&**device)? {
        report.findings.push(Finding {
            severity: Severity::Note,
            part: Part::Superblock,
            offset: len,
            object: None,
            what: "no copy of the superblock lies behind the pool: if its first 8 KiB are lost, it cannot be repaired".into(),
            remedy: format!("`pmo grow POOL {len}` adds the copy to a pool in a file; a device has to be longer than its pool"),
        });
    }
    Ok(())
}

const PIECE: usize = 1024;

fn each_object(
    store: &Arc<Store>,
    wanted: impl Fn(&Located) -> bool,
    mut look: impl FnMut(&Located) -> Result<ControlFlow<()>, StoreError>,
) -> Result<(), StoreError> {
    for entries in store.entries()?.chunks(PIECE) {
        for object in &store.objects(entries, |object| wanted(object).then_some(*object))? {
            if look(object)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The living writer's object: this file may be a copy of a pool in use, torn between moments.
fn note_living_writers(
    store: &Arc<Store>,
    device: &Arc<dyn Device>,
    report: &mut Report,
) -> Result<(), StoreError> {
    each_object(store, Located::is_bound, |object| {
        let writer = living_writer(&object.entry);
        let Some((writer, name)) = writer.and_then(|writer| Some((writer, writer.name()?))) else {
            return Ok(ControlFlow::Continue(()));
        };
        if device.probe(LockKey::Object(object.offset))?.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let pid = writer.pid;
        report.findings.retain(|found| {
            (found.severity, found.part, found.offset) != (Severity::Note, Part::Entry, object.offset)
        });
        report.findings.push(Finding {
            severity: Severity::Note,
            part: Part::Entry,
            offset: object.offset,
            object: Some(object.entry.name()),
            what: format!("its last writer, process {pid} ({name}), still runs, and does not have this file: it may be a copy of a pool in use, with parts of different moments"),
            remedy: "such a copy is no backup: `pmo backup` makes one beside the users of a pool".into(),
        });
        Ok(ControlFlow::Break(()))
    })
}

fn judge_contents(
    store: &Arc<Store>,
    device: &Arc<dyn Device>,
    report: &mut Report,
) -> Result<(), StoreError> {
    let has_bytes =
        |object: &Located| !object.is_bound() && !object.is_sealed() && object.entry.class != CLASS_SHARED;
    each_object(store, has_bytes, |object| {
        if device.probe(LockKey::Object(object.offset))?.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        let size = object.entry.usable(object.entry.size.get());
        if let Ok(Some(Contents { what, least })) = Contents::at_rest(store, object)
            && least > size
        {
            report.findings.push(Finding {
                severity: Severity::Error,
                part: Part::Entry,
                offset: object.offset,
                object: Some(object.entry.name()),
                what: format!("its {what} has {least} bytes, and the object {size}: the end was cut off"),
                remedy: "restore it from a backup".into(),
            });
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Memory files of dead processes: see [`remove_leftovers`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftovers {
    /// Removed files.
    pub removed: u64,
    /// Files that a process has, which stay.
    pub in_use: u64,
}

/// Removes dead processes' memory of on-demand objects of the *deleted* pool that was at `path`,
/// with its commits: never use it for a moved pool.
///
/// # Errors
/// Those of opening, if `path` is no pool: nothing is removed. `Io`: a folder cannot be read, or a
/// file cannot be removed.
pub fn remove_leftovers(path: impl AsRef<Path>) -> Result<Leftovers> {
    let path = path.as_ref();
    let there = match PoolOptions::new().read_only(true).open(path) {
        Ok(pool) => Some(pool),
        Err(error) if error.kind() == ErrorKind::NoPool => None,
        Err(error) => return Err(error),
    };
    let failed = |cause: Cause| Error::new("remove memory that was left of", cause).pool(path);
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // As the processes had it, through any links.
    let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
    let origin = match (folder, absolute.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => absolute,
    };
    let wanted = |identity: &Identity, stated: &Origin| {
        there.as_ref().is_some_and(|pool| pool.inner().may_need(identity, stated))
    };
    let done = memory::remove_of_deleted(&origin, wanted).map_err(|error| failed(error.into()))?;
    Ok(Leftovers { removed: done.0, in_use: done.1 })
}

/// Repairs the findings of [`check`] without loss, or as far as `how` allows. No process may have
/// the pool open.
///
/// # Errors
/// As for [`check`], and `Busy` or `Held` if the pool is in use.
pub fn repair(
    path: impl AsRef<Path>,
    options: &PoolOptions,
    how: &RepairOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<RepairAction>> {
    let access = if how.dry_run { Access::ReadOnly } else { Access::ReadWrite };
    let path = path.as_ref();
    run("repair", path, options, access, |media| {
        if !how.dry_run {
            media.claim(path, options.allow_remote)?;
        }
        Ok(Store::repair(media.device().clone(), how, progress)?)
    })
}

/// Upgrades the pool at `path` to this format, in place; `dry_run` only tests it, in memory.
/// Resumes an interrupted upgrade.
///
/// # Errors
/// `Held`: a program has the pool open. `Damaged`: the pool was not sound, and is unchanged.
/// Otherwise as for [`check`].
pub fn upgrade(
    path: impl AsRef<Path>,
    options: &PoolOptions,
    dry_run: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Upgraded> {
    let access = if dry_run { Access::ReadOnly } else { Access::ReadWrite };
    let path = path.as_ref();
    run("upgrade", path, options, access, |media| {
        if !dry_run {
            media.claim_alone(path, options.allow_remote)?;
        }
        Ok(Store::upgrade(media.device(), identity(), dry_run, progress)?)
    })
}

/// Keeps other processes from opening a pool for writing.
#[doc(hidden)]
pub struct Alone(Media);

impl Alone {
    /// The file, or the device.
    ///
    /// # Errors
    /// The operating system's.
    pub fn file(&self) -> io::Result<File> {
        Ok(self.0.descriptor()?.into())
    }
}

/// Excludes all other processes from the file or device at `path`. For tools; not part of the
/// stable interface.
///
/// # Errors
/// `Held` or `Busy`: a program has the pool open; the path cannot be opened for writing.
#[doc(hidden)]
pub fn claimed(path: impl AsRef<Path>, options: &PoolOptions) -> Result<Alone> {
    let path = path.as_ref();
    run("replace", path, options, Access::ReadWrite, |media| {
        media.claim_alone(path, options.allow_remote)?;
        Ok(Alone(media.clone()))
    })
}

/// As [`claimed`], of a pool, after recovering dead processes' commits from memory.
///
/// # Errors
/// As for [`claimed`]; `NoPool`; as for [`Pool::recover`].
#[doc(hidden)]
pub fn alone(path: impl AsRef<Path>, options: &PoolOptions) -> Result<Alone> {
    let path = path.as_ref();
    run("clone", path, options, Access::ReadWrite, |media| {
        media.claim_alone(path, options.allow_remote)?;
        let store = Store::open(media.device().clone(), identity())?;
        for number in store.memories()? {
            memory::recover(&store, &memory_place(media, path, store.id()), number)?;
        }
        Ok(Alone(media.clone()))
    })
}

/// The superblock slots of the medium at `path`, intact or not.
///
/// # Errors
/// The path cannot be read as a medium.
#[doc(hidden)]
pub fn superblocks(path: impl AsRef<Path>, options: &PoolOptions) -> Result<Vec<SuperblockSlot>> {
    run("inspect", path.as_ref(), options, Access::ReadOnly, |media| {
        let medium = &**media.device();
        let fits = |slot: &SuperblockSlot| slot.offset + size_of::<Superblock>() as u64 <= medium.len();
        Ok(Store::superblocks(medium)?.into_iter().filter(fits).collect())
    })
}

impl Pool {
    /// Looks at the store under the pool. Not part of the stable interface.
    ///
    /// # Errors
    /// The error of `look`.
    #[doc(hidden)]
    pub fn insides<T>(
        &self,
        operation: &'static str,
        look: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<T> {
        look(self.store()).map_err(|cause| Error::new(operation, cause).pool(self.path()))
    }
}

fn run<T>(
    operation: &'static str,
    path: &Path,
    options: &PoolOptions,
    access: Access,
    mut work: impl FnMut(&mut Media) -> Result<T, Cause>,
) -> Result<T> {
    media::open(path, &options.as_media(access))
        .map_err(Cause::from)
        .and_then(|mut media| patiently(options.wait.unwrap_or_default(), || work(&mut media)))
        .map_err(|cause| Error::new(operation, cause).pool(path))
}
