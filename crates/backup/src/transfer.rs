//! Objects of one or several pools as one stream, and back into an existing pool
//! (docs/decisions/0054).
//!
//! The stream is a full backup, which all readers of backups accept. Far pointers tell which
//! objects belong together ([`Space::reachable`]).

use crate::Progress;
use crate::backup::{Before, Summary, write_all};
use crate::chain::Kept;
use crate::decode::Decoder;
use crate::error::{BackupError, Result};
use crate::folder::{publish, replaced};
use crate::format::BUFFER;
use crate::partial;
use crate::restore::{Restored, Target};
use crate::source::{Choice, Source};
use indelible::{Pool, Space};
use std::collections::HashSet;
use std::io::{BufWriter, Read, Write};
use std::path::Path;

/// Writes objects, by ID, as one stream; with `closed`, also all that their far pointers reach.
/// Each has the state of its last psync; those of one pool are as of one moment. The pools are
/// those of `space`.
///
/// # Errors
/// `Pool`: no pool has an object, or an entry dangles. `SameName`: two objects of different pools
/// have one name. As for [`backup_to`](crate::backup_to).
pub fn export_to(
    space: &Space,
    objects: &[[u8; 16]],
    closed: bool,
    key: &[u8],
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Summary> {
    export_as(Path::new("(stream)"), (space, objects, closed, key), out, progress)
}

fn export_as(
    path: &Path,
    (space, objects, closed, key): (&Space, &[[u8; 16]], bool, &[u8]),
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<Summary> {
    // The space excludes writers from the reached objects until all is written.
    let reached = space.reachable(objects, closed)?;
    let mut names = HashSet::new();
    let mut by_pool: Vec<(&Pool, Vec<String>)> = Vec::new();
    for found in &reached {
        if !names.insert(&found.name) {
            return Err(BackupError::SameName(found.name.clone()));
        }
        match by_pool.iter_mut().find(|(pool, _)| pool.id() == found.pool.id()) {
            Some((_, of_pool)) => of_pool.push(found.name.clone()),
            None => by_pool.push((&found.pool, vec![found.name.clone()])),
        }
    }
    let mut id = [0; 16];
    let drawn = getrandom::fill(&mut id).map_err(|error| std::io::Error::other(error.to_string()));
    drawn.map_err(BackupError::file("draw random bytes for", path))?;
    let mut sources = Vec::new();
    for (pool, objects) in &by_pool {
        sources.push((*pool, Source::hold(pool, &id, &Choice { objects, key, snapshots: false })?));
    }
    write_all(&sources, &id, path, out, Before::default(), progress)
}

/// As [`export_to`], to a file, named once whole and durable.
///
/// # Errors
/// As for [`export_to`]; `Exists` without `replace`, `NotReplaced` if it is no backup.
pub fn export_file(
    space: &Space,
    objects: &[[u8; 16]],
    closed: bool,
    key: &[u8],
    (path, replace): (&Path, bool),
    progress: Progress<'_>,
) -> Result<Summary> {
    let path = &replaced(path, replace)?;
    let partial = partial::begin(path)?;
    let mut out = BufWriter::with_capacity(BUFFER, partial::handle(&partial)?);
    let made = export_as(path, (space, objects, closed, key), &mut out, progress)?;
    let durable = out.into_inner().map_err(|error| error.into_error()).and_then(|file| file.sync_all());
    durable.map_err(BackupError::file("write", path))?;
    replaced(path, replace)?;
    publish(partial.path(), path, replace)?;
    Ok(Summary { path: Some(path.to_owned()), ..made })
}

/// Brings a stream's objects into an existing pool, once all of it is proved. Position-independent
/// ones get free addresses; with `rebase` all do, and pointers change ([`Pool::copy_rebased`]). The
/// others keep theirs.
///
/// # Errors
/// Nothing is imported: `Damaged`, `NotABackup`, `Version`; `Object` if its name or ID exists, or
/// its addresses are taken; as for [`Pool::copy_rebased`]. The process's death or a power failure
/// leaves all objects or none.
pub fn import_from(
    input: &mut dyn Read,
    name: &Path,
    pool: &Pool,
    rebase: bool,
    progress: Progress<'_>,
) -> Result<Restored> {
    let mut decoder = Decoder::open(input, name)?;
    let kept = Kept::of(name, &decoder.header, &decoder.objects);
    if kept.depth > 0 {
        return Err(BackupError::NotAlone(name.to_owned()));
    }
    // Leftovers of a killed import.
    pool.store().reap()?;
    let imported = Target::begin_free(pool, &kept.objects, rebase).and_then(|mut target| {
        decoder.each(&mut |chunk| {
            let chunk = chunk?;
            target.write(&kept.objects[chunk.object], chunk, u64::MAX, false)?;
            target.tell(progress);
            Ok(())
        })?;
        target.publish(kept.clone())
    });
    if imported.is_err() {
        let _ = pool.store().reap();
    }
    imported
}
