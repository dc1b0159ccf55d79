//! A writable mapping of a file, and the write-back of its lines: for programs without crash
//! consistency (S0.30, NCC).

#![allow(unsafe_code)]

use crate::Result;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::{io, ptr};

pub const LINE: usize = 64;

/// Invariant 1: `base` is the first of `len` mapped bytes of this value alone.
pub struct Mapped {
    base: *mut u8,
    len: usize,
    file: File,
    writable: bool,
    memory: bool,
}

// SAFETY: bytes of its own (1), reached through borrows.
unsafe impl Send for Mapped {}

impl Mapped {
    pub fn create(path: &Path, len: usize, memory: bool) -> Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, len as u64)?;
        Mapped::of(file, len, true, memory)
    }

    pub fn of_len(path: &Path, len: usize, memory: bool) -> Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(len as u64)?;
        Mapped::of(file, len, true, memory)
    }

    pub fn open(path: &Path, writable: bool, memory: bool) -> Result<Self> {
        let file = File::options().read(true).write(writable).open(path)?;
        let len = file.metadata()?.len() as usize;
        Mapped::of(file, len, writable, memory)
    }

    fn of(file: File, len: usize, writable: bool, memory: bool) -> Result<Self> {
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base =
            unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        Ok(Mapped { base: base.cast(), len, file, writable, memory })
    }

    pub fn grow(&mut self, len: usize) -> Result<()> {
        self.file.set_len(len as u64)?;
        // SAFETY: the mapping (1), without references: `self` is borrowed exclusively.
        let base = unsafe { libc::mremap(self.base.cast(), self.len, len, libc::MREMAP_MAYMOVE) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        (self.base, self.len) = (base.cast(), len);
        Ok(())
    }

    pub fn stored(&self) -> &[u8] {
        // SAFETY: (1); borrowed with self.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    /// # Panics
    /// The file was opened for reading.
    pub fn bytes(&mut self) -> &mut [u8] {
        assert!(self.writable, "mapped for reading");
        // SAFETY: (1), writable; borrowed with self.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len) }
    }

    /// Starts to make a range durable; [`finish`](Mapped::finish) waits for it.
    pub fn flush(&self, from: usize, len: usize) {
        if self.memory {
            for at in (from / LINE * LINE..(from + len).min(self.len)).step_by(LINE) {
                // SAFETY: within the mapping (1).
                write_back(unsafe { self.base.add(at) });
            }
        }
    }

    /// Waits until everything flushed, and on a disk everything stored, is durable.
    pub fn finish(&self) -> Result<()> {
        if self.memory {
            fence();
            return Ok(());
        }
        // SAFETY: the mapping (1).
        match unsafe { libc::msync(self.base.cast(), self.len, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().into()),
        }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: (1); no references to it are left.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

#[cfg(target_arch = "x86_64")]
fn write_back(line: *const u8) {
    use std::sync::OnceLock;
    static CLWB: OnceLock<bool> = OnceLock::new();
    // CPUID 7.0, EBX bit 24.
    let clwb = *CLWB.get_or_init(|| std::arch::x86_64::__cpuid_count(7, 0).ebx & (1 << 24) != 0);
    // SAFETY: writes a line back and changes nothing; every x86-64 has clflush.
    unsafe {
        if clwb {
            std::arch::asm!("clwb [{}]", in(reg) line, options(nostack, preserves_flags));
        } else {
            std::arch::asm!("clflush [{}]", in(reg) line, options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: orders stores.
    unsafe { std::arch::asm!("sfence", options(nostack, preserves_flags)) };
}

#[cfg(target_arch = "aarch64")]
fn write_back(line: *const u8) {
    // SAFETY: writes a line back to the point of coherency and changes nothing.
    unsafe { std::arch::asm!("dc cvac, {}", in(reg) line, options(nostack, preserves_flags)) };
}

#[cfg(target_arch = "aarch64")]
fn fence() {
    // SAFETY: orders the lines written back.
    unsafe { std::arch::asm!("dsb sy", options(nostack, preserves_flags)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_bytes_are_in_the_file() {
        let path = std::env::temp_dir().join(format!("mapped-{}", std::process::id()));
        for memory in [true, false] {
            let mut mapped = Mapped::create(&path, 8192, memory).unwrap();
            mapped.bytes()[5000] = 7;
            mapped.flush(5000, 1);
            mapped.finish().unwrap();
            assert_eq!(std::fs::read(&path).unwrap()[5000], 7);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
