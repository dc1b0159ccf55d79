//! Decrypts pages and puts them in place, on userfaultfd faults and without.

#![allow(unsafe_code)]

use crate::Result;
use crate::pattern::PAGE;
use crate::stats::Samples;
use chacha20::cipher::consts::U10;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, Tag, UnboundKey};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};
use std::{io, ptr};

const CIPHERTEXT: usize = 4096;
const ASSOCIATED: [u8; 48] = [3; 48];
const KEY: [u8; 32] = [7; 32];

/// Invariant 1: `base` is the first of `pages` mapped pages of this value alone, absent unless it
/// fills them.
pub struct UnsealFloor {
    ciphertext: Vec<([u8; PAGE], Tag)>,
    base: *mut u8,
    pages: usize,
    faults: File,
}

// SAFETY: threads put pages in place by system calls, and read them (1).
unsafe impl Sync for UnsealFloor {}

#[repr(C)]
struct Copy {
    to: u64,
    from: u64,
    len: u64,
    mode: u64,
    copied: i64,
}

const API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
const REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const COPY: libc::Ioctl = 0xc028_aa03_u32 as libc::Ioctl;

impl UnsealFloor {
    /// `None`: userfaultfd is unavailable.
    pub fn new(pages: usize) -> Result<Option<Self>> {
        // SAFETY: the call takes flags, and returns a new descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | 1) };
        let Ok(fd @ 0..) = i32::try_from(fd) else { return Ok(None) };
        // SAFETY: a new descriptor, which no other code has.
        let faults = unsafe { File::from_raw_fd(fd) };
        let seal = |number: usize| {
            let mut page = [number as u8; PAGE];
            let (cipher, nonce) = cipher(number);
            let tag = cipher.seal_in_place_separate_tag(nonce, Aad::from(ASSOCIATED), &mut page);
            tag.map(|tag| (page, tag)).map_err(|error| error.to_string())
        };
        let ciphertext = (0..CIPHERTEXT).map(seal).collect::<std::result::Result<_, _>>()?;
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { libc::mmap(ptr::null_mut(), pages * PAGE, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        let floor = UnsealFloor { ciphertext, base: base.cast(), pages, faults };
        floor.call(API, &mut [0xaa_u64, 0, 0])?;
        floor.call(REGISTER, &mut [floor.base as u64, (pages * PAGE) as u64, 1, 0])?;
        Ok(Some(floor))
    }

    fn call<T>(&self, request: libc::Ioctl, argument: &mut T) -> Result<()> {
        // SAFETY: callers pass the struct that the request names; pages are put into the own range
        // alone (1).
        match unsafe { libc::ioctl(self.faults.as_raw_fd(), request, ptr::from_mut(argument)) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().into()),
        }
    }

    pub fn pages(&self) -> usize {
        self.pages
    }

    pub fn bytes(&self) -> usize {
        self.pages * PAGE
    }

    fn decrypt(&self, page: usize, into: &mut [u8; PAGE]) {
        let (bytes, tag) = &self.ciphertext[page % CIPHERTEXT];
        into.copy_from_slice(bytes);
        let (cipher, nonce) = cipher(page % CIPHERTEXT);
        let opened = cipher.open_in_place_separate_tag(nonce, Aad::from(ASSOCIATED), *tag, into, 0..);
        opened.expect("it was sealed with this key");
    }

    fn fill(&self, page: usize, buffer: &mut [u8; PAGE]) -> Result<()> {
        self.decrypt(page, buffer);
        let to = self.base as u64 + (page * PAGE) as u64;
        let mut copy = Copy { to, from: buffer.as_ptr() as u64, len: PAGE as u64, mode: 0, copied: 0 };
        self.call(COPY, &mut copy)
    }

    fn empty(&self) -> Result<()> {
        // SAFETY: the own range (1), without references to it.
        match unsafe { libc::madvise(self.base.cast(), self.pages * PAGE, libc::MADV_DONTNEED) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().into()),
        }
    }

    pub fn fill_all(&self, threads: usize) -> Result<Duration> {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            let work = |thread: usize| {
                let mut buffer = [0; PAGE];
                (thread..self.pages).step_by(threads).try_for_each(|page| self.fill(page, &mut buffer))
            };
            let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || work(thread))).collect();
            work(0)?;
            others.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
        })?;
        let took = begin.elapsed();
        self.empty()?;
        Ok(took)
    }

    /// Nanoseconds of the first touch of each page, answered by another thread.
    pub fn touch(&self, pages: &[usize]) -> Result<Samples> {
        let count = pages.len();
        let samples = std::thread::scope(|scope| {
            let server = scope.spawn(move || -> Result<()> {
                let (mut buffer, mut message) = ([0; PAGE], [0; 32]);
                for _ in 0..count {
                    (&self.faults).read_exact(&mut message)?;
                    let address = u64::from_ne_bytes(message[16..24].try_into()?);
                    self.fill((address - self.base as u64) as usize / PAGE, &mut buffer)?;
                }
                Ok(())
            });
            let mut samples = Samples::default();
            for page in pages {
                assert!(*page < self.pages, "a page of the range");
                let begin = Instant::now();
                // SAFETY: a page of the own range (1), which the server puts in place.
                let byte = unsafe { self.base.add(page * PAGE).read_volatile() };
                samples.push(begin.elapsed().as_nanos() as f64);
                std::hint::black_box(byte);
            }
            server.join().map_err(|_| "the server panicked")??;
            Ok::<_, crate::Error>(samples)
        })?;
        self.empty()?;
        Ok(samples)
    }

    pub fn page(&self) -> f64 {
        let mut buffer = [0; PAGE];
        let mut samples = Samples::default();
        for round in 0..32 {
            let begin = Instant::now();
            (0..64).for_each(|page| self.decrypt(round * 64 + page, &mut buffer));
            samples.push(begin.elapsed().as_nanos() as f64 / 64.0);
        }
        std::hint::black_box(&buffer);
        samples.median()
    }
}

impl Drop for UnsealFloor {
    fn drop(&mut self) {
        // SAFETY: the own mapping (1).
        unsafe { libc::munmap(self.base.cast(), self.pages * PAGE) };
    }
}

/// XChaCha20-Poly1305 as in sealed objects: each page has its own nonce, and thereby its own key.
fn cipher(number: usize) -> (LessSafeKey, Nonce) {
    let mut first = [0; 16];
    first[..8].copy_from_slice(&(number as u64).to_le_bytes());
    let key = chacha20::hchacha::<U10>(&KEY.into(), &first.into());
    let key = UnboundKey::new(&CHACHA20_POLY1305, &key).expect("32 bytes");
    (LessSafeKey::new(key), Nonce::assume_unique_for_key([0; 12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_arrive_decrypted() {
        let Some(floor) = UnsealFloor::new(100).unwrap() else {
            eprintln!("not tested: no userfaultfd");
            return;
        };
        let mut page = [0; PAGE];
        floor.decrypt(77, &mut page);
        assert!(page.iter().all(|byte| *byte == 77));
        assert_eq!(floor.touch(&[5, 99, 0]).unwrap().len(), 3);
        assert!(floor.fill_all(2).unwrap() > Duration::ZERO);
        assert!(floor.page() > 0.0);
    }
}
