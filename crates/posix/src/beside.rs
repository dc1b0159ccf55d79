//! The last psync of a volume in memory, for a reader beside its writer where the pool has no room
//! for a snapshot.
//!
//! The copy is an object of a pool whose file has no name: it ends with the reader.

use crate::error::{Error, Result};
use indelible::{Pool, PoolOptions, ReadObject};
use indelible_store::error::StoreError;
use indelible_store::store::Attributes;
use indelible_store::table::Key;
use rustix::io::Errno;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const PIECE: usize = 1 << 20;
/// Of the copy's pool, for all but the object.
const ROOM: u64 = 16 << 20;

/// Copies what the last psync left, and delays the writer's next psync meanwhile. `None`: it has no
/// writer.
///
/// # Errors
/// `EBUSY`, `ENOSPC`: no memory, `EIO`.
pub(crate) fn copied(pool: &Pool, name: &str) -> Result<Option<ReadObject>> {
    let still = pool.recovering(|store| store.hold_still(name, Key(b"")))?;
    let Some(still) = still.map_err(|error| failed(&error))? else { return Ok(None) };
    let (folder, window) = (Folder::new()?, pool.store().superblock());
    let size = still.object().entry.size.get();
    let options = PoolOptions::new().window(window.window.get(), window.window_len.get());
    let copy = options.format(folder.0.join("copy"), size.next_multiple_of(ROOM) + ROOM)?;
    let kept = Attributes { published: size, ..Attributes::of(still.object()) };
    let object = copy.store().adopt(&kept).map_err(|error| failed(&error))?;
    let mut piece = vec![0; PIECE];
    for at in (0..size).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min((size - at) as usize)];
        still.read(at, piece).map_err(|error| failed(&error))?;
        if piece.iter().any(|byte| *byte != 0) {
            object.write(at, piece).map_err(|error| failed(&error))?;
        }
    }
    drop(still);
    object.publish().map_err(|error| failed(&error))?;
    Ok(Some(copy.attach_read(name)?))
}

fn failed(error: &StoreError) -> Error {
    match error {
        StoreError::HeldStill { .. } | StoreError::Changing { .. } => {
            Error::new(libc::EBUSY, "its writer keeps changing it, try again")
        }
        StoreError::NoRoom { .. } | StoreError::NoSpace => {
            Error::new(libc::ENOSPC, "no memory for a copy beside its writer")
        }
        error => Error::new(libc::EIO, "no copy beside its writer").about(error.to_string()),
    }
}

/// Removed by the drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = place.join(format!("pmo-volume-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Folder(folder)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let errno = Errno::from_io_error(&error).map_or(libc::EIO, Errno::raw_os_error);
                    return Err(Error::outside(errno, "no folder for a copy beside its writer", &folder));
                }
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
