//! Finds and removes unneeded files. A file is judged and removed under its lock, which its owner
//! holds from before the file has a name until it removes the file or dies.

use std::path::{Path, PathBuf};

use super::identity::Identity;
use super::{BackingError, Origin, file, stated_origin};
use indelible_store::Mutant;
use indelible_store::medium::LockMode;
use std::fs::File;

#[derive(Debug)]
pub(crate) enum Kept {
    Wanted,
    InUse,
    Failed(BackingError),
}

#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub(crate) removed: Vec<PathBuf>,
    pub(crate) kept: Vec<(PathBuf, Kept)>,
}

/// The files may have commits that are nowhere else.
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

enum Verdict {
    Remove,
    Keep,
    PassOver,
}

type Stated<'a> = &'a dyn Fn() -> Option<Origin>;

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

fn open(path: &Path) -> Result<Option<File>, BackingError> {
    let own = rustix::process::geteuid();
    let found = file::open(path, |user| own.is_root() || user == own.as_raw())?;
    Ok(found.map(|(file, _)| file))
}

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
