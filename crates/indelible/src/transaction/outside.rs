//! Memory of a transactional object that plain loads see outside of transactions
//! (docs/decisions/0067-readable-outside.md): an unnamed file, mapped for transactions, and
//! read-only at the object's own address. Objects on demand map their backing instead (`kept`).
//!
//! Invariants:
//!
//! 1. The file is at least as long as either mapping, never gets shorter, and has memory for all
//!    its bytes: no access to a mapping fails for want of them.

use crate::error::Cause;
use crate::mapping::{Mapping, MappingError};
use crate::sys::blocks::allot;
use crate::sys::fork::ForkFd;
use crate::sys::mmap::Protection;
use indelible_store::store::Writer;
use rustix::fs::{MemfdFlags, SealFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

const PIECE: usize = 256 << 10;

pub(super) struct Outside {
    file: ForkFd,
    pub(super) words: Mapping,
}

impl Outside {
    /// Whole pages, to be [filled](Self::fill).
    pub(super) fn new(len: usize, room: usize) -> Result<Outside, Cause> {
        let failed = |source: io::Error| MappingError::Io { addr: 0, len, source };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"indelible", flags).map_err(|error| failed(error.into()))?;
        reserve(&file, len)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK).map_err(|error| failed(error.into()))?;
        let file = ForkFd::new(file).map_err(failed)?;
        let words = Mapping::shared(None, (len, room), file.as_fd(), 0, Protection::ReadWrite)?;
        Ok(Outside { file, words })
    }

    pub(super) fn show(&self, addr: usize, protection: Protection) -> Result<Mapping, MappingError> {
        Mapping::shared(Some(addr), (self.words.len(), 0), self.file.as_fd(), 0, protection)
    }

    pub(super) fn reserve(&self, len: usize) -> Result<(), Cause> {
        Ok(reserve(&self.file, len)?)
    }

    pub(super) fn grow(&mut self, shown: &mut Mapping, len: usize) -> Result<(), Cause> {
        shown.grow(len, Some(0))?;
        Ok(self.words.grow(len, Some(0))?)
    }

    pub(super) fn fill(&self, writer: &Writer) -> Result<(), Cause> {
        let len = self.words.len();
        let failed = |source| MappingError::Io { addr: self.words.addr(), len, source };
        let file = File::from(self.file.as_fd().try_clone_to_owned().map_err(failed)?);
        each_piece(writer, len, |at, piece| Ok(file.write_all_at(piece, at as u64).map_err(failed)?))
    }
}

pub(super) fn each_piece(
    writer: &Writer,
    len: usize,
    mut put: impl FnMut(usize, &[u8]) -> Result<(), Cause>,
) -> Result<(), Cause> {
    let (pages, mut bytes) = (writer.pages(), vec![0; PIECE.min(len)]);
    for at in (0..len).step_by(PIECE) {
        let piece = &mut bytes[..PIECE.min(len - at)];
        pages.read(at as u64, piece)?;
        put(at, piece)?;
    }
    Ok(())
}

fn reserve(file: impl AsFd, len: usize) -> Result<(), MappingError> {
    allot(file, len as u64).map_err(|error| MappingError::Io { addr: 0, len, source: error.into() })
}
