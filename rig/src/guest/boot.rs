//! Continuing a saved machine is a boot: random numbers, the boot ID among them, differ from other
//! machines'.

#![allow(unsafe_code)]

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Error, Write};
use std::os::fd::AsRawFd;

/// `RNDRESEEDCRNG`.
const RESEED: libc::c_ulong = 0x5207;

pub(crate) fn reseed(bytes: &[u8]) -> Result<()> {
    let mut source = File::options().write(true).open("/dev/urandom")?;
    source.write_all(bytes)?;
    // SAFETY: this call takes nothing.
    let done = unsafe { libc::ioctl(source.as_raw_fd(), RESEED as _) };
    if done < 0 { Err(Error::last_os_error()).context("no new random numbers") } else { Ok(()) }
}
