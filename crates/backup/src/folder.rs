//! Backups as files: named once whole and durable; a folder makes one at a time.

use crate::Progress;
use crate::backup::{Before, Indexed, Summary, backup};
use crate::chain::{PART, SUFFIX, files, number, rank};
use crate::error::{BackupError, Result};
use crate::format::{BUFFER, MAGIC, hex};
use crate::index_file::{self, Index};
use crate::interrupted;
use crate::part::Part;
use crate::partial::{self, FOR_OWNER};
use crate::source::Choice;
use indelible::Pool;
use indelible_files::DIRECT;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zerocopy::little_endian::U64;

/// While a backup is made.
const LOCK: &str = ".pmo-backup.lock";
/// Suffix of unfinished backups.
const PARTIAL: &str = "partial";

/// Makes a backup in a folder, which is created if missing. It has the changes since the pool's
/// newest backup there; else, or with `full`, all pages. An index of that backup's pages tells
/// changes while it and its bases have the lengths and the ends that they had; without an index
/// they are verified. It continues an interrupted one of the same kind: unchanged written pages are
/// not written again.
///
/// # Errors
/// As for [`backup_to`](crate::backup_to); `FolderBusy`; `Kept`, with the cause, if the next one
/// can continue.
pub fn backup_into(
    pool: &Pool,
    choice: &Choice<'_>,
    folder: &Path,
    full: bool,
    progress: Progress<'_>,
) -> Result<Summary> {
    fs::create_dir_all(folder).map_err(BackupError::file("create", folder))?;
    let _lock = lock(folder)?;
    let part = keep_partial(pool, folder, full)?;
    let (mut below, mut why_full) = (None, None);
    let (own, others): (Vec<_>, Vec<_>) =
        files(folder)?.into_iter().partition(|(_, header)| header.pool == pool.id());
    let newest = own.into_iter().max_by_key(|(path, header)| rank(path, header));
    let state = newest.as_ref().map_or([0; 3], |(_, header)| header.state.map(U64::get));
    let newest = newest.map(|(path, _)| path);
    if let Some(path) = part.clone().or(newest.clone().filter(|_| !full)) {
        match Index::read(&path) {
            Ok(index) => below = Some((path, index)),
            Err(error) => why_full = Some(error.to_string()),
        }
    }
    let path = free_name(pool, folder, SUFFIX)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let partial = folder.join(format!(".{stem}.{PARTIAL}"));
    let file = index_file::Writer::begin(folder.join(format!(".{stem}.index.{PARTIAL}")));
    let mut index = file.map(|file| Indexed { file, done: None });
    let before = Before { below: below.as_ref().map(|(_, index)| index), state, index: index.as_mut() };
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(FOR_OWNER).custom_flags(DIRECT);
    let file = options.open(&partial).map_err(BackupError::file("create", &path))?;
    let made = write(pool, choice, &path, (&partial, file), before, false, progress);
    let made = made.map_err(|cause| failed(cause, &partial))?;
    if let Some(Indexed { file, done: Some((ids, whole)) }) = index {
        let files = below.iter().flat_map(|(_, index)| index.files.clone()).chain([whole]);
        // Without an index, the next one reads the chain.
        let _ = file.end(&ids, &files.collect::<Vec<_>>(), &path);
    }
    if let Some(before) = newest {
        let _ = fs::remove_file(index_file::beside(&before));
    }
    let base = below.map(|(path, _)| path);
    let resumed = part.is_some() && base == part;
    let others: BTreeSet<_> = others.iter().map(|(_, header)| hex(&header.pool)).collect();
    Ok(Summary { base, resumed, why_full, others: others.into_iter().collect(), ..made })
}

/// A free name with the highest number: names sort as backups do.
fn free_name(pool: &Pool, folder: &Path, suffix: &str) -> Result<PathBuf> {
    let mut last = 0;
    for entry in fs::read_dir(folder).map_err(BackupError::file("read", folder))? {
        let path = entry.map_err(BackupError::file("read", folder))?.path();
        if path.extension().is_some_and(|end| end == SUFFIX || end == PART) {
            last = last.max(number(&path));
        }
    }
    Ok(folder.join(format!("{}-{:06}.{suffix}", hex(&pool.id()[..4]), last.saturating_add(1))))
}

/// Makes a full backup as a file of that name, which may be a backup with `replace`.
///
/// # Errors
/// As for [`backup_to`](crate::backup_to); `Exists`, and `NotReplaced` if it is no backup.
pub fn backup_file(
    pool: &Pool,
    choice: &Choice<'_>,
    path: &Path,
    replace: bool,
    progress: Progress<'_>,
) -> Result<Summary> {
    let path = &replaced(path, replace)?;
    let partial = partial::begin(path)?;
    write(
        pool,
        choice,
        path,
        (partial.path(), partial::handle(&partial)?),
        Before::default(),
        replace,
        progress,
    )
}

/// The file that `path` names, to be made, or to be replaced: a backup, or empty.
pub(crate) fn replaced(path: &Path, replace: bool) -> Result<PathBuf> {
    let Ok(there) = fs::canonicalize(path) else { return Ok(path.to_owned()) };
    if !replace {
        return Err(BackupError::Exists(path.to_owned()));
    }
    expect_backup(&there)?;
    Ok(there)
}

/// Fails at anything but a backup and an empty file: another one may be a pool in use.
fn expect_backup(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(found) if found.is_file() && (found.len() == 0 || begins_as_backup(path)?) => Ok(()),
        _ => Err(BackupError::NotReplaced { path: path.to_owned(), found: "no backup" }),
    }
}

/// Whether the file may be a backup, whole or not.
pub(crate) fn begins_as_backup(path: &Path) -> Result<bool> {
    let opened = File::options().read(true).custom_flags(DIRECT).open(path);
    let mut start = Vec::new();
    let read = opened.and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.map_err(BackupError::file("read", path))?;
    Ok(start == MAGIC)
}

/// Keeps a part that the next backup can continue.
fn failed(cause: BackupError, partial: &Path) -> BackupError {
    if !interrupted::is_of_use(partial) {
        let _ = fs::remove_file(partial);
        return cause;
    }
    let bytes = fs::metadata(partial).map_or(0, |found| found.len());
    BackupError::Kept { cause: Box::new(cause), path: partial.to_owned(), bytes }
}

/// Writes to `partial`, an empty file, which becomes `path` once durable. After an error the file,
/// if it exists, is durable.
fn write(
    pool: &Pool,
    choice: &Choice<'_>,
    path: &Path,
    (partial, file): (&Path, File),
    before: Before<'_>,
    replace: bool,
    progress: Progress<'_>,
) -> Result<Summary> {
    let made = write_partial(pool, choice, path, (partial, file), before, progress)?;
    if replace {
        expect_backup(path)?;
    }
    publish(partial, path, replace)?;
    Ok(Summary { path: Some(path.to_owned()), ..made })
}

fn write_partial(
    pool: &Pool,
    choice: &Choice<'_>,
    path: &Path,
    (partial, file): (&Path, File),
    before: Before<'_>,
    progress: Progress<'_>,
) -> Result<Summary> {
    let failed = |action| BackupError::file(action, path);
    let mut out = BufWriter::with_capacity(BUFFER, Part::new(file));
    let made = backup(pool, choice, path, &mut out, before, progress);
    // A failed backup is flushed, too: the next one continues it.
    let flushed = out.flush().map_err(failed("write"));
    let (mut part, _) = out.into_parts();
    let made = made.and_then(|made| flushed.map(|()| made));
    let made = made.and_then(|made| part.finish().map(|()| made).map_err(failed("make durable")));
    if made.is_err() && part.keep().is_err() {
        // The durable part is unknown.
        let _ = fs::remove_file(partial);
    }
    made
}

/// Durably names a durable file. Without `replace` no file loses that name, and after an error none
/// has it.
pub(crate) fn publish(partial: &Path, path: &Path, replace: bool) -> Result<()> {
    let named = if replace { fs::rename(partial, path) } else { rename_to_free(partial, path) };
    named.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => BackupError::Exists(path.to_owned()),
        _ => BackupError::file("create", path)(error),
    })?;
    let folder = path.parent().filter(|folder| *folder != "").unwrap_or(Path::new("."));
    let durable = File::open(folder).and_then(|folder| folder.sync_all());
    durable.map_err(|error| {
        if !replace {
            // An error promises that nothing is there.
            let _ = fs::remove_file(path);
        }
        BackupError::file("make durable", folder)(error)
    })
}

/// One step: a death between a link and the removal of the other name would leave both.
fn rename_to_free(partial: &Path, path: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE) {
        // The file system cannot.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(partial, path)?;
            fs::remove_file(partial)
        }
        done => Ok(done?),
    }
}

/// The lock file is private: any user who can open it could block backups.
fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(FOR_OWNER).custom_flags(DIRECT);
    let file = options.open(&path).map_err(BackupError::file("create", &path))?;
    let found = file.metadata().map_err(BackupError::file("inspect", &path))?;
    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        // Of an earlier release.
        let owned = file.set_permissions(Permissions::from_mode(FOR_OWNER));
        owned.map_err(BackupError::file("close to other users", &path))?;
    }
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackupError::FolderBusy(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(BackupError::file("lock", &path)(error)),
    }
}

/// Keeps the file of the pool's interrupted backup that can be continued, and removes others; the
/// caller has the lock.
fn keep_partial(pool: &Pool, folder: &Path, full: bool) -> Result<Option<PathBuf>> {
    let mut kept = None;
    for entry in fs::read_dir(folder).map_err(BackupError::file("read", folder))? {
        let path = entry.map_err(BackupError::file("read", folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden || path.extension().is_none_or(|end| end != PARTIAL) {
            continue;
        }
        if kept.is_none() && interrupted::close(&path, &pool.id(), full)? {
            let name = free_name(pool, folder, PART)?;
            publish(&path, &name, false)?;
            kept = Some(name);
        } else {
            fs::remove_file(&path).map_err(BackupError::file("remove", &path))?;
        }
    }
    Ok(kept)
}
