//! Shared backing: an object's memory as a file that outlives the process, on tmpfs or beside the
//! pool. It is never trusted after a reboot.
//!
//! Invariants:
//! 1. A file is complete before it has a name: blocks reserved, header written, lock held. So
//!    stores to a mapping never fail for lack of space, and an incomplete file is damaged.
//! 2. The process that has the file's lock owns it. Only the owner of a file removes its name.
//! 3. Nothing in a file is read before its type, owner, permissions, lock, size and header were
//!    checked.
//!
//! The layer above holds the object's lock, calls [`Backing::find`] before it makes a file, and
//! drops mappings before their [`Backing`].

mod common;
mod error;
mod file;
mod header;
mod identity;
mod origin;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub(crate) use common::Common;
pub(crate) use error::BackingError;
use file::failed;
use header::Wrong;
pub(crate) use identity::Identity;
pub(crate) use origin::Origin;

use crate::mapping::Mapping;
use crate::sys::blocks::allot;
use crate::sys::fork::ForkFd;
use crate::sys::mmap::Protection;
use crate::sys::{PAGE, naming};
use indelible_store::medium::LockMode;

pub(crate) const MEMORY: &str = "/dev/shm";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Folders<'a> {
    pub(crate) memory: &'a Path,
    pub(crate) beside: &'a Path,
    pub(crate) origin: &'a Origin,
}

/// Owned by this process. Dropping it leaves the file to the next process, as a death does.
#[derive(Debug)]
pub(crate) struct Backing {
    fd: ForkFd,
    path: PathBuf,
    len: usize,
}

impl Backing {
    pub(crate) fn find(
        folders: Folders<'_>,
        identity: &Identity,
        len: usize,
    ) -> Result<Option<Backing>, BackingError> {
        find_anywhere(folders, identity, Length::Exactly(len))
    }

    pub(crate) fn find_longer(
        folders: Folders<'_>,
        identity: &Identity,
        len: usize,
    ) -> Result<Option<Backing>, BackingError> {
        find_anywhere(folders, identity, Length::AtLeast(len))
    }

    pub(crate) fn create(
        folders: Folders<'_>,
        identity: &Identity,
        len: usize,
    ) -> Result<Backing, BackingError> {
        if !identity.has_boot() {
            return Err(BackingError::NoBoot);
        }
        let first = match make(folders.memory, identity, len, folders.origin) {
            Err(BackingError::Io { source, .. }) if is_unsuitable(&source) => source,
            done => return done,
        };
        make(folders.beside, identity, len, folders.origin).map_err(|error| match error {
            BackingError::Io { source: second, .. } if is_unsuitable(&second) => BackingError::NoRoom {
                len,
                memory: folders.memory.to_owned(),
                first,
                beside: folders.beside.to_owned(),
                second,
            },
            other => other,
        })
    }

    /// Removes a new one on failure, which would block the next of this identity.
    pub(crate) fn used_by<T>(
        self,
        put: impl FnOnce(&Backing) -> Result<T, BackingError>,
    ) -> Result<(Backing, T), BackingError> {
        match put(&self) {
            Ok(used) => Ok((self, used)),
            Err(error) => {
                drop(self.remove());
                Err(error)
            }
        }
    }

    pub(crate) fn map(&self, addr: Option<usize>) -> Result<Mapping, BackingError> {
        Ok(Mapping::shared(addr, (self.len, 0), self.fd.as_fd(), PAGE as u64, Protection::ReadWrite)?)
    }

    pub(crate) fn map_part(
        &self,
        addr: Option<usize>,
        from: usize,
        (len, room): (usize, usize),
        protection: Protection,
    ) -> Result<Mapping, BackingError> {
        Ok(Mapping::shared(addr, (len, room), self.fd.as_fd(), Backing::offset(from), protection)?)
    }

    pub(crate) fn offset(at: usize) -> u64 {
        (PAGE + at) as u64
    }

    /// Extends it with zeros. After an error or a death its first bytes are unchanged.
    pub(crate) fn lengthen(&mut self, len: usize) -> Result<(), BackingError> {
        if len <= self.len {
            return Ok(());
        }
        allot(&self.fd, (PAGE + len) as u64).map_err(failed("enlarge", &self.path))?;
        // The file is long enough before it states its new length.
        let stated = (len as u64).to_le_bytes();
        let wrote = rustix::io::pwrite(&self.fd, &stated, header::LENGTH as u64);
        match wrote.map_err(failed("write", &self.path))? {
            wrote if wrote == stated.len() => {}
            _ => return Err(failed("write", &self.path)(Errno::IO)),
        }
        self.len = len;
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn check(&self, size: u64, identity: &Identity, longer: bool) -> Result<(), BackingError> {
        let damaged = |why: String| Err(BackingError::Damaged { path: self.path.clone(), why });
        let mut page = vec![0; PAGE];
        let got = rustix::io::pread(&self.fd, &mut page[..], 0).map_err(failed("read", &self.path))?;
        if got < PAGE {
            return damaged(format!("it has {size} bytes, less than its header"));
        }
        // It is as long as it states, and states at least the requested length.
        let stated = header::length(&page).filter(|stated| longer && *stated >= self.len);
        let len = stated.unwrap_or(self.len);
        match header::differs(&page, identity, len) {
            Some(Wrong::Version(found)) => {
                return Err(BackingError::Version { path: self.path.clone(), found, known: header::VERSION });
            }
            Some(Wrong::Other(why)) => return damaged(why.into()),
            None => {}
        }
        match (PAGE as u64).saturating_add(len as u64) {
            expected if expected == size || longer && expected < size => Ok(()),
            expected => damaged(format!("it has {size} bytes, not {expected}")),
        }
    }

    /// Only when the next process needs nothing of it. A fork removes nothing.
    pub(crate) fn remove(self) -> Result<(), BackingError> {
        if self.fd.is_stale() {
            return Ok(());
        }
        file::unlink(&self.fd, &self.path)
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        if !self.fd.is_stale() {
            file::unlock(&self.fd);
        }
    }
}

#[derive(Clone, Copy)]
enum Length {
    Exactly(usize),
    AtLeast(usize),
}

/// Even of another process: words may change at any time. `false`: absent or not this pool's.
pub(crate) fn peek(
    folders: Folders<'_>,
    identity: &Identity,
    len: usize,
    at: usize,
    words: &mut [u64],
) -> bool {
    let read = |folder: &Path| {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file: File = rustix::fs::open(folder.join(identity.name()), flags, Mode::empty()).ok()?.into();
        let (mut page, mut bytes) = (vec![0; PAGE], vec![0; 8 * words.len()]);
        file.read_exact_at(&mut page, 0).ok()?;
        file.read_exact_at(&mut bytes, (PAGE + at) as u64).ok()?;
        let len = header::length(&page).filter(|stated| *stated > len).unwrap_or(len);
        let is_own = header::origin(&page).is_some_and(|stated| stated.may_be_of(folders.origin));
        (is_own && header::differs(&page, identity, len).is_none()).then_some(bytes)
    };
    let Some(bytes) = read(folders.memory).or_else(|| read(folders.beside)) else { return false };
    let found = bytes.as_chunks::<8>().0;
    words.iter_mut().zip(found).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
    true
}

fn find_anywhere(
    folders: Folders<'_>,
    identity: &Identity,
    len: Length,
) -> Result<Option<Backing>, BackingError> {
    if !identity.has_boot() {
        return Err(BackingError::NoBoot);
    }
    let find_in = |folder| find_locked((folder, folders.origin), identity, len, LockMode::Exclusive);
    match find_in(folders.memory)? {
        None => find_in(folders.beside),
        found => Ok(found),
    }
}

fn find_locked(
    (folder, pool): (&Path, &Origin),
    identity: &Identity,
    len: Length,
    mode: LockMode,
) -> Result<Option<Backing>, BackingError> {
    let (len, longer) = match len {
        Length::Exactly(len) => (len, false),
        Length::AtLeast(len) => (len, true),
    };
    let path = folder.join(identity.name());
    let own = rustix::process::geteuid().as_raw();
    let Some((file, stat)) = file::open(&path, |user| user == own)? else { return Ok(None) };
    file::check_private(&path, &stat)?;
    // A copy does not wait for the original's processes.
    if let Some(stated) = stated_origin(&file)
        && !stated.may_be_of(pool)
    {
        return Err(BackingError::OfOriginal { path, origin: stated.path });
    }
    if !file::lock(&file, &path, mode)? {
        return Err(BackingError::InUse { path, holder: file::holder(&file) });
    }
    let fd = ForkFd::new(file.into()).map_err(failed("keep", &path))?;
    let found = Backing { fd, path, len };
    let stat = rustix::fs::fstat(&found.fd).map_err(failed("examine", &found.path))?;
    if stat.st_nlink == 0 {
        return Ok(None);
    }
    found.check(stat.st_size as u64, identity, longer)?;
    Ok(Some(found))
}

fn stated_origin(file: &File) -> Option<Origin> {
    let mut page = vec![0; PAGE];
    file.read_exact_at(&mut page, 0).ok()?;
    header::origin(&page)
}

fn make(folder: &Path, identity: &Identity, len: usize, origin: &Origin) -> Result<Backing, BackingError> {
    make_locked(folder, identity, (len, origin), LockMode::Exclusive)
}

fn make_locked(
    folder: &Path,
    identity: &Identity,
    (len, origin): (usize, &Origin),
    lock: LockMode,
) -> Result<Backing, BackingError> {
    let path = folder.join(identity.name());
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file: File = rustix::fs::open(folder, flags, mode).map_err(failed("make", &path))?.into();
    // The process's mask may have taken permissions away.
    rustix::fs::fchmod(&file, mode).map_err(failed("make", &path))?;
    allot(&file, (PAGE + len) as u64).map_err(failed("reserve", &path))?;
    file.write_all_at(&header::encode(identity, len, origin), 0).map_err(failed("write", &path))?;
    // Rule D1 of docs/protocol.md.
    if !file::lock(&file, &path, lock)? {
        return Err(BackingError::InUse { path, holder: file::holder(&file) });
    }
    match naming::name(file.as_fd(), &path) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Err(BackingError::Exists { path }),
        Err(error) => return Err(failed("name", &path)(error)),
    }
    let fd = ForkFd::new(file.into()).map_err(failed("keep", &path))?;
    Ok(Backing { fd, path, len })
}

fn is_unsuitable(error: &io::Error) -> bool {
    let found = Errno::from_io_error(error);
    let room = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::NOMEM];
    let folder = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::ROFS, Errno::ISDIR, Errno::OPNOTSUPP];
    found.is_some_and(|found| room.contains(&found) || folder.contains(&found))
}
