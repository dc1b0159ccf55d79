//! A growing, memory-mapped file: the alternative without objects.
//!
//! Invariant 1: no other process changes a mapped file, as programs without locks assume.

#![allow(unsafe_code)]

use anyhow::{Context, Result};
use memmap2::MmapMut;
use std::fs::File;
use std::path::{Path, PathBuf};

const FIRST: u64 = 1 << 16;

#[derive(Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    file: File,
    bytes: MmapMut,
}

impl MappedFile {
    pub(crate) fn open(path: &Path) -> Result<MappedFile> {
        let named = || format!("file {}", path.display());
        let options = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = options.with_context(named)?;
        if file.metadata()?.len() < FIRST {
            file.set_len(FIRST).with_context(named)?;
        }
        // SAFETY: (1).
        let bytes = unsafe { MmapMut::map_mut(&file) }.with_context(named)?;
        Ok(MappedFile { path: path.to_owned(), file, bytes })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Grows to `len` bytes, which may move.
    pub(crate) fn grow_to(&mut self, len: usize) -> Result<()> {
        if len > self.bytes.len() {
            self.file.set_len(len.max(2 * self.bytes.len()) as u64)?;
            // SAFETY: (1).
            self.bytes = unsafe { MmapMut::map_mut(&self.file) }?;
        }
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.bytes.flush()?)
    }
}
