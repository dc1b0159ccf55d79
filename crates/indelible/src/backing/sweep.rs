//! Finding and removing files that no process will ask for: of earlier boots, and of dead processes
//! whose objects have gone on.
//!
//! A file goes by a judgement made while this process has its lock. Its owner has that lock from
//! before the file has a name until it removes the file or dies, so that the judgement holds: the
//! owner is gone, and nothing that it did is still to come.

use std::path::{Path, PathBuf};

use super::identity::Identity;
use super::{BackingError, Origin, file, stated_origin};
use indelible_store::Mutant;
use indelible_store::medium::LockMode;
use std::fs::File;

/// Why a file stays.
#[derive(Debug)]
pub(crate) enum Kept {
    /// The next attach of its object will ask for it.
    Wanted,
    /// A process has it.
    InUse,
    /// It could not be removed.
    Failed(BackingError),
}

/// The files of a folder after a sweep.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub(crate) removed: Vec<PathBuf>,
    pub(crate) kept: Vec<(PathBuf, Kept)>,
}

/// Removes the files of a folder that are of another boot than `boot`, and those of it that no
/// process has and that are not `wanted`, given the origin that they state if that is intact. They
/// may have commits that are nowhere else.
pub(crate) fn sweep(
    folder: &Path,
    boot: [u8; 16],
    wanted: impl Fn(&Identity, Option<&Origin>) -> bool,
) -> Result<Swept, BackingError> {
    sweep_by(folder, |identity, stated| match identity.boot == boot && wanted(identity, stated().as_ref()) {
        true => Verdict::Keep,
        false => Verdict::Remove,
    })
}

/// Removes the files of a folder that state the pool at `path` and are not `wanted`, unless a
/// process has them.
pub(crate) fn sweep_path(
    folder: &Path,
    path: &Path,
    wanted: impl Fn(&Identity, &Origin) -> bool,
) -> Result<Swept, BackingError> {
    sweep_by(folder, |identity, stated| match stated() {
        Some(stated) if stated.path == path && !wanted(identity, &stated) => Verdict::Remove,
        _ => Verdict::PassOver,
    })
}

/// The fate of a file in a sweep.
enum Verdict {
    Remove,
    /// The next attach of its object will ask for it.
    Keep,
    /// It is not this sweep's.
    PassOver,
}

/// The origin that a file states.
type Stated<'a> = &'a dyn Fn() -> Option<Origin>;

/// Judges each file before it has its lock, so that most files are not even locked for a moment,
/// and those that are to go once more when it has: no process can begin to need them then.
fn sweep_by(folder: &Path, judge: impl Fn(&Identity, Stated<'_>) -> Verdict) -> Result<Swept, BackingError> {
    let mut swept = Swept::default();
    let failed = || file::failed("read the folder", folder);
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let Some(identity) = entry.file_name().to_str().and_then(Identity::parse) else { continue };
        let path = entry.path();
        let still = |stated: Stated<'_>| matches!(judge(&identity, stated), Verdict::Remove);
        let kept = match judge(&identity, &|| open(&path).ok()?.as_ref().and_then(stated_origin)) {
            Verdict::PassOver => continue,
            Verdict::Keep => Some(Kept::Wanted),
            Verdict::Remove => remove(&path, still).unwrap_or_else(|error| Some(Kept::Failed(error))),
        };
        match kept {
            Some(kept) => swept.kept.push((path, kept)),
            None => swept.removed.push(path),
        }
    }
    Ok(swept)
}

/// Opens a file of this user's; root opens those of others, too.
fn open(path: &Path) -> Result<Option<File>, BackingError> {
    let own = rustix::process::geteuid();
    let found = file::open(path, |user| own.is_root() || user == own.as_raw())?;
    Ok(found.map(|(file, _)| file))
}

/// Removes a file that no process has, if `judge`, which is asked while it is locked, returns true.
pub(super) fn remove(path: &Path, judge: impl Fn(Stated<'_>) -> bool) -> Result<Option<Kept>, BackingError> {
    let Some(file) = open(path)? else { return Ok(None) };
    // Rule D12 of docs/protocol.md.
    if !file::lock(&file, path, LockMode::Exclusive)? {
        return Ok(Some(Kept::InUse));
    }
    let done = match judge(&|| stated_origin(&file)) || Mutant::JudgedUnlocked.is_on() {
        true => file::unlink(&file, path).map(|()| None),
        false => Ok(Some(Kept::Wanted)),
    };
    file::unlock(&file);
    done
}
