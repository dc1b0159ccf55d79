//! Clones: a copy of a pool's file with its own ID.
//!
//! While no process can write, the whole file is copied; then the superblock's slots and their copy
//! get the new ID, which nothing else contains: checksums have another seed. The clone gets its
//! name once it is durable.
//!
//! A clone at other addresses is a backup restored without a file (docs/decisions/0041-rebase.md).

use crate::Progress;
use crate::backup::backup_to;
use crate::error::{BackupError, Result};
use crate::folder::publish;
use crate::partial;
use crate::restore::{RestoreOptions, Restored, restore_stream};
use crate::source::Choice;
use indelible::{Pool, PoolOptions};
use indelible_store::format::superblock::{SLOTS, Superblock};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use zerocopy::{FromZeros, IntoBytes};

const PIECE: u64 = 16 << 20;

/// A finished clone.
#[derive(Clone, Copy, Debug)]
pub struct Cloned {
    /// Bytes of the pool.
    pub len: u64,
    /// Bytes of copied data, without holes; 0 if the file system shares them.
    pub copied: u64,
}

/// Copies a pool in a file, which no process has open for writing, under a new ID, so that both can
/// be open at once. The clone has everything; commits on demand of dead writers reach the pool
/// first. Addresses are the same: a process attaches an object of one of the two at a time.
///
/// # Errors
/// Nothing is created: `Exists`; `Pool` if another process has the pool, or it is none; `File`.
pub fn clone_pool(from: &Path, to: &Path, options: &PoolOptions, progress: Progress<'_>) -> Result<Cloned> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    // Refuses unknown formats.
    let len = options.clone().read_only(true).open(from)?.info()?.length;
    let alone = indelible::alone(from, options)?;
    let source = alone.file().map_err(BackupError::file("read", from))?;
    let found = source.metadata().map_err(BackupError::file("read", from))?;
    if !found.is_file() {
        return Err(BackupError::NoFile(from.to_owned()));
    }
    let made = partial::begin(to)?;
    let partial = made.path();
    let target = made.opened();
    target.set_permissions(found.permissions()).map_err(BackupError::file("create", partial))?;
    let copied = copy(&source, target, found.len(), progress);
    let copied = copied.map_err(BackupError::file("write", partial))?;
    rename(target, found.len(), id()?).map_err(BackupError::file("write", partial))?;
    target.sync_all().map_err(BackupError::file("make durable", partial))?;
    publish(partial, to, false)?;
    Ok(Cloned { len, copied })
}

/// As [`clone_pool`], at other addresses: a process can attach objects of both. All pointers must
/// be known ([`Pool::copy_rebased`]). Objects keep their IDs, but no ties; volatile ones are left
/// out. Processes may use the original meanwhile.
///
/// # Errors
/// Nothing is created: those of [`backup_to`] and [`restore_stream`].
pub fn clone_rebased(
    from: &Pool,
    key: &[u8],
    to: &Path,
    options: &PoolOptions,
    progress: Progress<'_>,
) -> Result<Restored> {
    let label = from.info()?.label;
    let name = from.path().to_owned();
    let (input, output) = io::pipe().map_err(BackupError::file("copy", &name))?;
    let (input, output) = (BufReader::new(input), BufWriter::with_capacity(1 << 20, output));
    let choice = Choice { key, ..Choice::default() };
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let mut output = output;
            backup_to(from, &choice, &mut output, &mut |_, _| {})?;
            output.flush().map_err(BackupError::file("copy", from.path()))
        });
        let how = RestoreOptions { rebase: true, ..RestoreOptions::default() };
        let mut input = input;
        let restored = restore_stream(&mut input, &name, to, &how, &options.clone().label(&label), progress);
        // An unfinished sender fails: its reader is gone.
        drop(input);
        let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (restored, sent) {
            // The truncated stream is not the cause.
            (Err(BackupError::Damaged { .. } | BackupError::NotABackup(_)), Err(error)) => Err(error),
            (restored, _) => restored,
        }
    })
}

fn id() -> Result<[u8; 16]> {
    let mut id = [0; 16];
    let drawn = getrandom::fill(&mut id).map_err(|error| io::Error::other(error.to_string()));
    drawn.map_err(BackupError::file("draw random bytes from", Path::new("/dev/urandom")))?;
    Ok(id)
}

/// Copies a file with its holes; returns copied bytes, 0 if the file system shares them.
fn copy(mut from: &File, mut to: &File, len: u64, progress: Progress<'_>) -> io::Result<u64> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        progress(len, len);
        return Ok(0);
    }
    to.set_len(len)?;
    let (mut copied, mut at) = (0, 0);
    while let Some((start, end)) = data(from, at, len)? {
        at = start;
        while at < end {
            let piece = PIECE.min(end - at);
            from.seek(SeekFrom::Start(at))?;
            to.seek(SeekFrom::Start(at))?;
            let done = io::copy(&mut from.take(piece), &mut to)?;
            if done < piece {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (at, copied) = (at + piece, copied + piece);
            progress(at, len);
        }
    }
    progress(len, len);
    Ok(copied)
}

/// The next data from `at`.
fn data(file: &File, at: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    use rustix::fs::SeekFrom::{Data, Hole};
    if at >= len {
        return Ok(None);
    }
    let start = match rustix::fs::seek(file, Data(at)) {
        Err(rustix::io::Errno::NXIO) => return Ok(None),
        // The file system cannot tell.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => return Ok(Some((at, len))),
        start => start?,
    };
    let end = rustix::fs::seek(file, Hole(start))?;
    Ok((start < len).then_some((start, end.min(len))))
}

/// Gives a file's pool another ID. Damaged slots and copies stay so.
fn rename(file: &File, len: u64, id: [u8; 16]) -> io::Result<()> {
    let mut places = SLOTS.to_vec();
    while let Some(offset) = places.pop() {
        let mut slot = Superblock::new_zeroed();
        if len.saturating_sub(offset) < size_of::<Superblock>() as u64 {
            continue;
        }
        file.read_exact_at(slot.as_mut_bytes(), offset)?;
        if slot.verify(len).is_ok() && slot.id != id {
            slot.id = id;
            file.write_all_at(slot.sealed().as_bytes(), offset)?;
            places.push(slot.length.get());
        }
    }
    Ok(())
}
