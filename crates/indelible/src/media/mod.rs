//! Real media behind the store's `Device`. [`open`] and [`create`] choose one for a path;
//! [`Media::from_device`] wraps any other.

mod claim;
mod create;
mod detect;
mod error;
mod file;
mod huge;
mod mappings;
mod memory;
mod model;
mod modelled;
mod space;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use indelible_store::medium::{Device, LockKey, LockMode};
use rustix::fs::{Mode, OFlags};

pub(crate) use create::{CreateOptions, create};
pub(crate) use detect::open;
pub(crate) use error::MediaError;
pub(crate) use file::FileMedium;
pub(crate) use memory::MemoryMedium;
pub use model::{CacheModel, MediumModel, Traffic};

use crate::sys::fork::ForkFd;
use crate::sys::ofd;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MediumChoice {
    #[default]
    Auto,
    File,
    Memory,
    Dax,
    /// A character device of device-DAX.
    DevDax,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaKind {
    File,
    Memory,
    Dax,
    DevDax,
    Other,
}

impl MediaKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MediaKind::File => "file",
            MediaKind::Memory => "memory",
            MediaKind::Dax => "dax",
            MediaKind::DevDax => "devdax",
            MediaKind::Other => "other",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenOptions {
    pub(crate) choice: MediumChoice,
    pub(crate) access: Access,
    pub(crate) allow_remote: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { choice: MediumChoice::Auto, access: Access::ReadWrite, allow_remote: false }
    }
}

#[derive(Clone)]
pub(crate) struct Media {
    kind: MediaKind,
    device: Arc<dyn Device>,
    file: Option<Arc<ForkFd>>,
    memory: Option<Arc<MemoryMedium>>,
    identity: Option<(u64, u64)>,
    claimed: Arc<[ForkFd]>,
}

impl Media {
    pub(crate) fn from_device(device: Arc<dyn Device>, identity: Option<(u64, u64)>) -> Media {
        Media { kind: MediaKind::Other, device, file: None, memory: None, identity, claimed: Arc::default() }
    }

    pub(crate) fn modelled(self, model: MediumModel) -> Media {
        let device = Arc::new(modelled::ModelledMedium::new(self.device, model));
        Media { device, memory: None, ..self }
    }

    pub(crate) fn kind(&self) -> MediaKind {
        self.kind
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    pub(crate) fn descriptor(&self) -> std::io::Result<OwnedFd> {
        let file = self.file.as_deref().ok_or(std::io::ErrorKind::Unsupported)?;
        file.as_fd().try_clone_to_owned()
    }

    /// `None` for device-DAX (which refuses private mappings) and media without a file.
    pub(crate) fn mappable(&self) -> Option<BorrowedFd<'_>> {
        match self.kind {
            MediaKind::File | MediaKind::Memory | MediaKind::Dax => self.file.as_deref().map(AsFd::as_fd),
            MediaKind::DevDax | MediaKind::Other => None,
        }
    }

    /// On tmpfs, a touched hole claims a page.
    pub(crate) fn may_lack_pages(&self, offset: u64, len: u64) -> bool {
        let (MediaKind::Memory, Some(file)) = (self.kind, &self.file) else { return false };
        let room = rustix::fs::fstatvfs(file);
        // tmpfs without a limit reports no blocks.
        let lacks =
            room.is_ok_and(|room| room.f_blocks > 0 && room.f_bavail.saturating_mul(room.f_frsize) < len);
        lacks && !space::is_written(file.as_fd(), offset, len)
    }

    /// Valid while this value or a clone lives. The writer of a range may change its memory at any
    /// time: never make a reference to it.
    pub(crate) fn memory_base(&self) -> Option<NonNull<u8>> {
        self.memory.as_ref().map(|memory| memory.base())
    }

    /// Forked children hold it, too. `None`: the file cannot be reopened.
    pub(crate) fn inheritable_lock(&self, key: LockKey) -> Option<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_ref()?.as_fd().as_raw_fd());
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        ofd::try_lock(fd.as_fd(), key.byte(), LockMode::Shared).ok()?.then_some(fd)
    }

    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }
}

impl std::fmt::Debug for Media {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Media")
            .field("kind", &self.kind)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
