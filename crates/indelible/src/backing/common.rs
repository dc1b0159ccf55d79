//! Memory that many processes share: one file; byte locks beyond its end tell which processes
//! exist.

use std::os::fd::AsFd;
use std::path::Path;

use super::file::{self, failed};
use super::{Backing, BackingError, Folders, Identity, Length, find_locked, make_locked};
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::Protection;
use indelible_store::medium::LockMode;

const CLAIMS: u64 = 1 << 48;

#[derive(Debug)]
pub(crate) struct Common(Backing);

impl Common {
    pub(crate) fn find(
        folders: Folders<'_>,
        identity: &Identity,
        len: usize,
    ) -> Result<Option<Common>, BackingError> {
        if !identity.has_boot() {
            return Err(BackingError::NoBoot);
        }
        let place = (folders.memory, folders.origin);
        Ok(find_locked(place, identity, Length::Exactly(len), LockMode::Shared)?.map(Common))
    }

    pub(crate) fn create(
        folders: Folders<'_>,
        identity: &Identity,
        len: usize,
    ) -> Result<Common, BackingError> {
        if !identity.has_boot() {
            return Err(BackingError::NoBoot);
        }
        make_locked(folders.memory, identity, (len, folders.origin), LockMode::Shared).map(Common)
    }

    pub(crate) fn map(&self, addr: Option<usize>, from: usize, len: usize) -> Result<Mapping, BackingError> {
        let offset = (PAGE + from) as u64;
        Ok(Mapping::shared(addr, (len, 0), self.0.fd.as_fd(), offset, Protection::ReadWrite)?)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn is_whole(&self) -> Result<bool, BackingError> {
        let stat = rustix::fs::fstat(&self.0.fd).map_err(failed("examine", self.path()))?;
        Ok(stat.st_size as u64 >= (PAGE + self.0.len) as u64)
    }

    /// `false`: another process has it. The caller excludes claims within one process.
    pub(crate) fn claim(&self, claim: u64) -> Result<bool, BackingError> {
        file::try_lock(&self.0.fd, self.path(), (CLAIMS + claim, LockMode::Exclusive))
    }

    pub(crate) fn give_up(&self, claim: u64) {
        crate::sys::ofd::unlock(self.0.fd.as_fd(), CLAIMS + claim);
    }

    pub(crate) fn is_claimed(&self, claim: u64) -> Result<bool, BackingError> {
        file::is_locked(&self.0.fd, self.path(), CLAIMS + claim)
    }

    pub(crate) fn remove(folders: Folders<'_>, identity: &Identity) -> Result<(), BackingError> {
        super::sweep::remove(&identity.path_in(folders.memory), |stated| {
            stated().is_some_and(|stated| stated.is_file_of(folders.origin))
        })
        .map(drop)
    }
}
