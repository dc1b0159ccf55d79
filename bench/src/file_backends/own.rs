//! Indelible: an object per file, a psync per update.
//!
//! An object has spare room: its start has the file's length, made durable by the psync of the
//! appended bytes.

use super::{File, FileBackend, Place, Purpose};
use crate::Result;
use indelible::{CreateOptions, Object, Pool, PoolOptions, ReadObject};

struct Own(Pool);

/// The length's place; the bytes follow.
const HEAD: usize = 64;

fn capacity(len: usize) -> u64 {
    (HEAD + len + len / 4) as u64
}

fn len_in(bytes: &[u8]) -> Result<usize> {
    let len = bytes.first_chunk().ok_or("an object without a length")?;
    Ok(usize::try_from(u64::from_le_bytes(*len))?)
}

fn read_file(bytes: &[u8], len: usize, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.clear();
    buffer.extend_from_slice(bytes.get(HEAD..HEAD + len).ok_or("a length beyond the object")?);
    Ok(())
}

struct Writing {
    object: Object,
    len: usize,
}

struct Reading(ReadObject);

pub fn open(place: &Place<'_>) -> Result<Box<dyn FileBackend>> {
    let options = PoolOptions::new().medium(place.medium.kind()).force(true);
    Ok(Box::new(Own(options.format(place.dir.join("pool"), place.len)?)))
}

impl FileBackend for Own {
    fn folder(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn create(&self, name: &str, room: usize, most: usize) -> Result<Box<dyn File + '_>> {
        let options = CreateOptions::new(capacity(room)).reach(capacity(most));
        Ok(Box::new(Writing { object: self.0.create_attached_with(name, &options)?, len: 0 }))
    }

    fn open(&self, name: &str, purpose: Purpose) -> Result<Box<dyn File + '_>> {
        if purpose == Purpose::Read {
            return Ok(Box::new(Reading(self.0.attach_read(name)?)));
        }
        let object = self.0.attach(name)?;
        let len = len_in(object.as_slice())?;
        Ok(Box::new(Writing { object, len }))
    }

    fn delete(&self, name: &str) -> Result<()> {
        Ok(self.0.destroy(name)?)
    }

    fn size(&self, name: &str) -> Result<u64> {
        let object = self.0.attach_read(name)?;
        let len = len_in(object.as_slice())?;
        object.detach()?;
        Ok(len as u64)
    }
}

impl File for Writing {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let (start, len) = (HEAD + self.len, self.len + bytes.len());
        if HEAD + len > self.object.len() {
            self.object.grow(capacity(len))?;
        }
        self.object.range_mut(start..start + bytes.len()).copy_from_slice(bytes);
        self.object.range_mut(0..8).copy_from_slice(&(len as u64).to_le_bytes());
        self.object.psync()?;
        self.len = len;
        Ok(())
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        read_file(self.object.as_slice(), self.len, buffer)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.object.detach()?)
    }
}

impl File for Reading {
    fn append(&mut self, _: &[u8]) -> Result<()> {
        Err("opened for reading".into())
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        let bytes = self.0.as_slice();
        read_file(bytes, len_in(bytes)?, buffer)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.detach()?)
    }
}
