//! Backups of pools: `python/indelible/_backups.py` has the calls for programs.

use crate::error::{advised, exception};
use crate::patience;
use crate::pool::Pool;
use crate::progress::Progress;
use indelible::PoolOptions;
use indelible_backup::{BackupError, Choice, RestoreOptions, Summary};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Backs up objects, by default all but volatile ones, into a folder or a new file. Returns the
/// file's path, the number of objects, the file's bytes, and the path of the backup that it builds
/// on.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the keywords of `Pool.backup`")]
pub(crate) fn _backup(
    py: Python<'_>,
    pool: &Bound<'_, Pool>,
    path: PathBuf,
    objects: Vec<String>,
    key: Option<&[u8]>,
    folder: bool,
    replace: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Option<PathBuf>, u64, u64, Option<PathBuf>)> {
    let pool = pool.get().get(py, "back up")?;
    let choice = Choice { objects: &objects, key: key.unwrap_or_default(), snapshots: false };
    let mut progress = Progress::new(progress);
    let made: Summary = outcome(py, "back up", || {
        progress.run(|tell| match folder {
            true => of_pool(indelible_backup::backup_into(&pool, &choice, &path, false, tell)),
            false => of_pool(indelible_backup::backup_file(&pool, &choice, &path, replace, tell)),
        })
    })?;
    Ok((made.path, made.objects, made.bytes, made.base))
}

/// Restores a backup to a new pool; returns the names of its objects.
#[pyfunction]
pub(crate) fn _restore(
    py: Python<'_>,
    backup: PathBuf,
    path: PathBuf,
    size: Option<u64>,
    replace: bool,
    rebase: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<String>> {
    let how = RestoreOptions { len: size, force: replace, rebase };
    let options = PoolOptions::new();
    let mut progress = Progress::new(progress);
    let restored = outcome(py, "restore", || {
        progress.run(|tell| of_pool(indelible_backup::restore(&backup, &path, &how, &options, tell)))
    })?;
    Ok(restored.objects)
}

/// Separates errors of pools, such as ended waits, from those of backups.
fn of_pool<T>(done: indelible_backup::Result<T>) -> indelible::Result<indelible_backup::Result<T>> {
    match done {
        Err(BackupError::Pool(error)) => Err(error),
        done => Ok(done),
    }
}

/// Makes a call in slices; errors name `operation`.
fn outcome<T: Send>(
    py: Python<'_>,
    operation: &str,
    call: impl FnMut() -> indelible::Result<PyResult<indelible_backup::Result<T>>> + Send,
) -> PyResult<T> {
    patience::in_slices(py, call)??.map_err(|error| failed(py, operation, &error))
}

fn failed(py: Python<'_>, operation: &str, error: &BackupError) -> PyErr {
    let kind = match error {
        BackupError::Pool(error) => return exception(py, error),
        BackupError::Exists(_) => "PoolExists",
        BackupError::Damaged { .. } | BackupError::BaseMissing { .. } | BackupError::BaseSwapped { .. } => {
            "Damaged"
        }
        BackupError::Version { .. } => "Version",
        BackupError::File { .. } => "Io",
        BackupError::FolderBusy(_) | BackupError::InUse { .. } => "Busy",
        _ => "Backup",
    };
    advised(py, kind, operation, &error.to_string(), error.remedy())
}
