//! Finding and removing what nobody will ask for: files of earlier boots, and of dead processes whose objects have gone on.

use std::path::{Path, PathBuf};

use super::BackingError;
use super::file;
use super::header;
use super::identity::Identity;
use crate::sys::PAGE;
use indelible_store::medium::LockMode;
use std::os::unix::fs::FileExt;

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

/// Removes the files of a folder that are of another boot than `boot`, and those of it that nobody has and that are not
/// `wanted`: whose attachment is the last one of its object for writing, or of a pool that the caller does not know. They
/// may have what no other place has.
pub(crate) fn sweep(
    folder: &Path,
    boot: [u8; 16],
    wanted: impl Fn(&Identity) -> bool,
) -> Result<Swept, BackingError> {
    // A file that somebody may ask for is not even locked for a moment.
    sweep_by(folder, |identity, _| match identity.boot == boot && wanted(identity) {
        true => Verdict::Keep,
        false => Verdict::Remove,
    })
}

/// Removes the files of a folder that state the pool at `origin` and are not `wanted`, unless a process has them.
pub(crate) fn sweep_origin(
    folder: &Path,
    origin: &Path,
    wanted: impl Fn(&Identity) -> bool,
) -> Result<Swept, BackingError> {
    sweep_by(folder, |identity, path| {
        match wanted(identity) || stated_origin(path).as_deref() != Some(origin) {
            true => Verdict::PassOver,
            false => Verdict::Remove,
        }
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

fn sweep_by(folder: &Path, judge: impl Fn(&Identity, &Path) -> Verdict) -> Result<Swept, BackingError> {
    let mut swept = Swept::default();
    let failed = || file::failed("read the folder", folder);
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let Some(identity) = entry.file_name().to_str().and_then(Identity::parse) else { continue };
        let path = entry.path();
        let kept = match judge(&identity, &path) {
            Verdict::PassOver => continue,
            Verdict::Keep => Some(Kept::Wanted),
            Verdict::Remove => remove(&path).unwrap_or_else(|error| Some(Kept::Failed(error))),
        };
        match kept {
            Some(kept) => swept.kept.push((path, kept)),
            None => swept.removed.push(path),
        }
    }
    Ok(swept)
}

/// The path of the pool that a file of this user's states; root reads those of others, too.
fn stated_origin(path: &Path) -> Option<PathBuf> {
    let own = rustix::process::geteuid();
    let (file, _) = file::open(path, |user| own.is_root() || user == own.as_raw()).ok()??;
    let mut page = vec![0; PAGE];
    file.read_exact_at(&mut page, 0).ok()?;
    header::origin(&page)
}

/// Removes a file that nobody has; root also one of another user's.
pub(super) fn remove(path: &Path) -> Result<Option<Kept>, BackingError> {
    let own = rustix::process::geteuid();
    let Some((file, _)) = file::open(path, |user| own.is_root() || user == own.as_raw())? else {
        return Ok(None);
    };
    if !file::lock(&file, path, LockMode::Exclusive)? {
        return Ok(Some(Kept::InUse));
    }
    let done = file::unlink(&file, path);
    file::unlock(&file);
    done.map(|()| None)
}
