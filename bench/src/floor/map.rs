//! Maps and unmaps a range of a file; opens and maps a whole file.

#![allow(unsafe_code)]

use crate::Result;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::{io, ptr};

pub struct MapFloor {
    file: File,
}

impl MapFloor {
    pub fn new(path: &Path, len: u64) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(len)?;
        Ok(MapFloor { file })
    }

    pub fn map(&self, len: usize, writable: bool) -> Result<()> {
        map_once(&self.file, len, writable, libc::MAP_PRIVATE)
    }
}

pub fn open_floor(path: &Path) -> Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let len = usize::try_from(file.metadata()?.len())?;
    map_once(&file, len, true, libc::MAP_SHARED)
}

fn map_once(file: &File, len: usize, writable: bool, sharing: libc::c_int) -> Result<()> {
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: a new mapping at an address of the kernel's choice, never touched, removed at once.
    unsafe {
        let base =
            libc::mmap(ptr::null_mut(), len, protection, sharing | libc::MAP_NORESERVE, file.as_raw_fd(), 0);
        if base == libc::MAP_FAILED || libc::munmap(base, len) != 0 {
            return Err(io::Error::last_os_error().into());
        }
    }
    Ok(())
}
