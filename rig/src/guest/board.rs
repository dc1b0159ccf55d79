//! Shared memory in which writers show numbers to the guard's process.
//!
//! Invariant: the memory is a file of `SIZE` bytes, never shortened, mapped until the process ends.

#![allow(unsafe_code)]

use anyhow::{Context, Result};
use indelible_rig::commits::WRITERS;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

const PATH: &str = "/dev/shm/board";
const SIZE: usize = 4096;

#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Shown {
    pub(crate) acknowledged: AtomicU64,
    pub(crate) awaited: AtomicU64,
}

impl Shown {
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.acknowledged.load(Ordering::Acquire), self.awaited.load(Ordering::Acquire))
    }
}

pub(crate) fn board() -> Result<&'static [Shown; WRITERS]> {
    const { assert!(size_of::<[Shown; WRITERS]>() <= SIZE) };
    let file = File::options().read(true).write(true).create(true).truncate(false).open(PATH);
    let file = file.context("cannot open the board")?;
    file.set_len(SIZE as u64)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of a file of that length.
    let at =
        unsafe { libc::mmap(std::ptr::null_mut(), SIZE, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error()).context("cannot map the board");
    }
    // SAFETY: page-aligned, large enough, never unmapped; any bytes are atomic numbers.
    Ok(unsafe { &*at.cast::<[Shown; WRITERS]>() })
}
