//! A private copy of an unattached object's bytes.
//!
//! Invariants of [`Image`]:
//!
//! 1. `[at, at + len)` is a mapping of this image alone, of whole pages, readable and writable
//!    until it is dropped.
//! 2. A heap in it is open only within [`with_heap`](Image::with_heap), which borrows the image.

#![allow(unsafe_code)]

use super::super::error::HeapError;
use super::super::raw::{Extent, HeapOptions, RawHeap};
use crate::mapping::MappingError;
use crate::sys::mmap::{self, Protection};
use indelible_store::format::PAGE;
use std::ptr::NonNull;

const PIECE: usize = 1 << 20;

pub(super) struct Image {
    at: NonNull<u8>,
    len: usize,
}

impl Image {
    pub(super) fn new(size: u64) -> Result<Image, MappingError> {
        let len = size.next_multiple_of(PAGE) as usize;
        let failed = |source| MappingError::Io { addr: 0, len, source };
        let addr = mmap::addresses(len).map_err(failed)?;
        // SAFETY: a new mapping that no other code knows of.
        unsafe { mmap::protect(addr, len, Protection::ReadWrite) }.map_err(failed)?;
        let at = NonNull::new(std::ptr::with_exposed_provenance_mut(addr)).unwrap_or(NonNull::dangling());
        Ok(Image { at, len })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: (1); changes need the image for themselves.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: (1), (2).
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }

    pub(super) fn fill<E>(
        &mut self,
        end: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = (end.next_multiple_of(PAGE) as usize).min(self.len);
        let mut piece = vec![0; PIECE.min(end)];
        for start in (0..end).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(end - start)];
            read(start as u64, piece)?;
            let pages = self.bytes_mut()[start..].chunks_mut(PAGE as usize);
            for (page, found) in pages.zip(piece.chunks(PAGE as usize)) {
                if found.iter().any(|byte| *byte != 0) {
                    page.copy_from_slice(found);
                }
            }
        }
        Ok(())
    }

    pub(super) fn with_heap<T>(
        &self,
        size: u64,
        f: impl FnOnce(&RawHeap, usize) -> Result<T, HeapError>,
    ) -> Result<T, HeapError> {
        let len = (size as usize).min(self.len);
        let extent = Extent { base: self.at, len, writable: false, marks: None, reach: 0 };
        // SAFETY: mapped (1) until `f` is done; the image is borrowed (2).
        let heap = unsafe { RawHeap::open(&extent, HeapOptions::new()) }?;
        f(&heap, self.at.addr().get())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the image's own mapping (1), which nothing uses any more.
        let _ = unsafe { mmap::unmap(self.at.addr().get(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter maps nothing")]
    fn an_image_holds_what_it_is_filled_with() {
        let mut image = Image::new(3 << 20).unwrap();
        let wanted: Vec<u8> =
            (0..2_500_000_u32).map(|n| if n / 9000 % 3 == 0 { n as u8 } else { 0 }).collect();
        let done: Result<(), ()> = image.fill(wanted.len() as u64, |at, bytes| {
            let from = &wanted[at as usize..];
            let len = bytes.len().min(from.len());
            bytes.fill(0);
            bytes[..len].copy_from_slice(&from[..len]);
            Ok(())
        });
        done.unwrap();
        assert!(image.bytes()[..wanted.len()] == wanted[..]);
        assert!(image.bytes()[wanted.len()..].iter().all(|byte| *byte == 0));
    }
}
