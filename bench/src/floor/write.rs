//! One durable write to a file with existing, written blocks.

use crate::Result;
use rustix::fs::{Mode, OFlags};
use rustix::io::ReadWriteFlags;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Small, so that the file keeps small folios: a small write visits every block of one.
const PIECE: usize = 4096;

pub struct WriteFloor {
    fd: OwnedFd,
    len: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl WriteFloor {
    pub fn new(path: &Path, len: u64) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
        let zeros = vec![0; PIECE];
        let mut at = 0;
        while at < len {
            let piece = (len - at).min(PIECE as u64) as usize;
            at += rustix::io::pwrite(&fd, &zeros[..piece], at)? as u64;
        }
        rustix::fs::fsync(&fd)?;
        Ok(WriteFloor { fd, len, at: 0, bytes: Vec::new() })
    }

    /// Makes `len` bytes durable behind the last ones, like a log.
    pub fn write(&mut self, len: usize) -> Result<()> {
        if self.at + len as u64 > self.len {
            self.at = 0;
        }
        if self.bytes.len() < len {
            self.bytes.resize(len, 0x5a);
        }
        let written = rustix::io::pwritev2(
            &self.fd,
            &[IoSlice::new(&self.bytes[..len])],
            self.at,
            ReadWriteFlags::DSYNC,
        )?;
        if written != len {
            return Err(format!("wrote {written} of {len} bytes").into());
        }
        self.at += len as u64;
        Ok(())
    }
}
