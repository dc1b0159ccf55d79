//! Mapped files, flushed where stored to: no crash consistency (S0.30, NCC).

use super::{File, FileBackend, Place, Purpose};
use crate::Result;
use crate::environment::Medium;
use crate::mapped::Mapped;
use std::path::PathBuf;

struct InPlace {
    dir: PathBuf,
    memory: bool,
}

struct Open {
    mapped: Mapped,
    len: usize,
}

pub fn open(place: &Place<'_>) -> Result<Box<dyn FileBackend>> {
    Ok(Box::new(InPlace { dir: place.dir.to_owned(), memory: place.medium == Medium::Memory }))
}

impl FileBackend for InPlace {
    fn folder(&self, path: &str) -> Result<()> {
        Ok(std::fs::create_dir_all(self.dir.join(path))?)
    }

    fn create(&self, name: &str, room: usize, _: usize) -> Result<Box<dyn File + '_>> {
        let mapped = Mapped::of_len(&self.dir.join(name), room, self.memory)?;
        Ok(Box::new(Open { mapped, len: 0 }))
    }

    fn open(&self, name: &str, purpose: Purpose) -> Result<Box<dyn File + '_>> {
        let mapped = Mapped::open(&self.dir.join(name), purpose == Purpose::Append, self.memory)?;
        let len = mapped.stored().len();
        Ok(Box::new(Open { mapped, len }))
    }

    fn delete(&self, name: &str) -> Result<()> {
        Ok(std::fs::remove_file(self.dir.join(name))?)
    }

    fn size(&self, name: &str) -> Result<u64> {
        Ok(std::fs::metadata(self.dir.join(name))?.len())
    }
}

impl File for Open {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.len + bytes.len();
        if end > self.mapped.stored().len() {
            self.mapped.grow(end)?;
        }
        self.mapped.bytes()[self.len..end].copy_from_slice(bytes);
        self.mapped.flush(self.len, bytes.len());
        self.len = end;
        self.mapped.finish()
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.clear();
        buffer.extend_from_slice(&self.mapped.stored()[..self.len]);
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
