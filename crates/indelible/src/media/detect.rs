use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use indelible_store::medium::{Device, LockKey, MediumError};
use rustix::fs::{Access, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::error::{READ, WRITE};
use super::memory::Backing;
use super::{
    Access as Wanted, FileMedium, Media, MediaError, MediaKind, MediumChoice, MemoryMedium, OpenOptions,
};
use crate::sys::fork::ForkFd;
use crate::sys::mmap::{self, Protection};
use crate::sys::{PAGE, flush};

/// File systems whose locks or mappings do not reach other machines, by `statfs` magic.
const REMOTE: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
    (0x786f_4256, "VirtualBox shared folders"),
];
const TMPFS: u32 = 0x0102_1994;
const RAMFS: u32 = 0x8584_58f6;

pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Media, MediaError> {
    let read_only = options.access == Wanted::ReadOnly;
    // NONBLOCK: a FIFO must be refused, not waited for.
    let flags = if read_only { OFlags::RDONLY } else { OFlags::RDWR } | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
        let may_read = || rustix::fs::access(path, Access::READ_OK).is_ok();
        let action = match error {
            Errno::ACCESS if !read_only && may_read() => WRITE,
            Errno::ACCESS => READ,
            _ => "open",
        };
        failed(action, path, error)
    })?;
    let fd = ForkFd::new(fd).map_err(|source| io_error("open", path, source))?;
    adopt(fd, path, options.choice, read_only, options.allow_remote)
}

pub(super) fn adopt(
    fd: ForkFd,
    path: &Path,
    choice: MediumChoice,
    read_only: bool,
    allow_remote: bool,
) -> Result<Media, MediaError> {
    if rustix::param::page_size() != PAGE {
        return Err(MediaError::Unsuitable {
            path: path.into(),
            choice: "a pool",
            why: "this kernel's pages are not of 4096 bytes",
        });
    }
    let stat = rustix::fs::fstat(&fd).map_err(|e| failed("inspect", path, e))?;
    let file_type = FileType::from_raw_mode(stat.st_mode);
    let magic = file_system(fd.as_fd(), path)?;
    if !allow_remote
        && file_type == FileType::RegularFile
        && let Some((_, name)) = REMOTE.iter().find(|(known, _)| *known == magic)
    {
        return Err(MediaError::Remote { path: path.into(), file_system: name });
    }
    let len = length(fd.as_fd(), &stat, file_type, path)?;
    if len == 0 {
        return Err(MediaError::Empty { path: path.into() });
    }
    let kind = decide(&fd, file_type, magic, choice, path)?;
    let identity = match file_type {
        FileType::BlockDevice | FileType::CharacterDevice => (u64::MAX, stat.st_rdev),
        _ => (stat.st_dev, stat.st_ino),
    };
    build(kind, Arc::new(fd), len, read_only, identity, path)
}

fn build(
    kind: MediaKind,
    fd: Arc<ForkFd>,
    len: u64,
    read_only: bool,
    identity: (u64, u64),
    path: &Path,
) -> Result<Media, MediaError> {
    let backing = match kind {
        MediaKind::Memory => Some(Backing::File),
        MediaKind::Dax => Some(Backing::Dax),
        MediaKind::DevDax => Some(Backing::Device),
        MediaKind::File | MediaKind::Other => None,
    };
    let (device, memory): (Arc<dyn Device>, _) = match backing {
        None => (Arc::new(FileMedium::new(Arc::clone(&fd), len, read_only)), None),
        Some(backing) => {
            if !flush::available() {
                return Err(MediaError::Unsuitable {
                    path: path.into(),
                    choice: kind.name(),
                    why: "this CPU has no instruction that writes cache lines back to persistent memory",
                });
            }
            let memory = MemoryMedium::map(Arc::clone(&fd), len, read_only, backing)
                .map_err(|source| io_error("map", path, source))?;
            let memory = Arc::new(memory);
            (Arc::clone(&memory) as Arc<dyn Device>, Some(memory))
        }
    };
    match device.probe(LockKey::Table) {
        Ok(_) => {}
        Err(source) => {
            return Err(MediaError::Medium { path: path.into(), source });
        }
    }
    Ok(Media { kind, device, file: Some(fd), memory, identity: Some(identity), claimed: Arc::default() })
}

fn decide(
    fd: &ForkFd,
    file_type: FileType,
    magic: u32,
    choice: MediumChoice,
    path: &Path,
) -> Result<MediaKind, MediaError> {
    let unsuitable = |choice, why| Err(MediaError::Unsuitable { path: path.into(), choice, why });
    match (file_type, choice) {
        (FileType::CharacterDevice, MediumChoice::Auto | MediumChoice::DevDax) => Ok(MediaKind::DevDax),
        (FileType::CharacterDevice, _) => unsuitable("a file", "it is a character device"),
        (_, MediumChoice::DevDax) => unsuitable("device-DAX", "it is not a character device"),
        (_, MediumChoice::File) => Ok(MediaKind::File),
        (FileType::BlockDevice, MediumChoice::Auto) => Ok(MediaKind::File),
        (FileType::BlockDevice, _) => unsuitable("memory", "it is a block device"),
        (_, MediumChoice::Memory) => Ok(MediaKind::Memory),
        (_, MediumChoice::Dax) if !map_sync_works(fd) => {
            unsuitable("DAX", "the file system cannot map it with MAP_SYNC (is it mounted with -o dax?)")
        }
        (_, MediumChoice::Dax) => Ok(MediaKind::Dax),
        (_, MediumChoice::Auto) if map_sync_works(fd) => Ok(MediaKind::Dax),
        (_, MediumChoice::Auto) if magic == TMPFS || magic == RAMFS => Ok(MediaKind::Memory),
        (_, MediumChoice::Auto) => Ok(MediaKind::File),
    }
}

#[allow(unsafe_code)]
fn map_sync_works(fd: &ForkFd) -> bool {
    let Ok(base) = mmap::shared(fd.as_fd(), PAGE, Protection::Read, true) else {
        return false;
    };
    // SAFETY: mapped just now and not used.
    let _ = unsafe { mmap::unmap(base.addr().get(), PAGE) };
    true
}

fn file_system(fd: BorrowedFd<'_>, path: &Path) -> Result<u32, MediaError> {
    let statfs = rustix::fs::fstatfs(fd).map_err(|e| failed("inspect", path, e))?;
    // The magics are 32-bit values, which some architectures sign-extend.
    Ok(statfs.f_type as u32)
}

fn length(fd: BorrowedFd<'_>, stat: &Stat, file_type: FileType, path: &Path) -> Result<u64, MediaError> {
    let kind = match file_type {
        FileType::RegularFile => return Ok(u64::try_from(stat.st_size).unwrap_or(0)),
        FileType::BlockDevice => {
            return rustix::fs::seek(fd, SeekFrom::End(0)).map_err(|e| failed("find the length of", path, e));
        }
        FileType::CharacterDevice => return dax_length(stat, path),
        FileType::Directory => "directory",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        _ => "special file",
    };
    Err(MediaError::Kind { path: path.into(), kind })
}

fn dax_length(stat: &Stat, path: &Path) -> Result<u64, MediaError> {
    let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let sys = format!("/sys/dev/char/{major}:{minor}");
    let is_dax = std::fs::canonicalize(format!("{sys}/subsystem")).is_ok_and(|to| to.ends_with("dax"));
    if !is_dax {
        return Err(MediaError::Kind { path: path.into(), kind: "character device" });
    }
    let text = std::fs::read_to_string(format!("{sys}/size"))
        .map_err(|e| io_error("find the length of", path, e))?;
    text.trim().parse().map_err(|_| io_error("find the length of", path, io::ErrorKind::InvalidData.into()))
}

pub(super) fn failed(action: &'static str, path: &Path, error: Errno) -> MediaError {
    match error {
        Errno::ROFS => MediaError::Medium { path: path.into(), source: MediumError::ReadOnly },
        Errno::ISDIR => MediaError::Kind { path: path.into(), kind: "directory" },
        _ => io_error(action, path, error.into()),
    }
}

pub(super) fn io_error(action: &'static str, path: &Path, source: io::Error) -> MediaError {
    MediaError::Io { action, path: path.into(), source }
}
