//! Indelible: an object for each file, a psync for each update.

use super::{File, Place, Volume};
use crate::Result;
use crate::personalities::Purpose;
use indelible::{CreateOptions, Object, Pool, PoolOptions, ReadObject};

struct Own(Pool);

struct Writing {
    object: Object,
    len: usize,
}

struct Reading(ReadObject);

pub fn open(place: &Place<'_>) -> Result<Box<dyn Volume>> {
    let options = PoolOptions::new().medium(place.medium.kind()).force(true);
    Ok(Box::new(Own(options.format(place.dir.join("pool"), place.len)?)))
}

impl Volume for Own {
    /// Names have folders in them; there is nothing to make.
    fn folder(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn create(&self, name: &str, room: usize, most: usize) -> Result<Box<dyn File + '_>> {
        let options = CreateOptions::new(room as u64).reach(most as u64);
        Ok(Box::new(Writing { object: self.0.create_attached_with(name, &options)?, len: 0 }))
    }

    fn open(&self, name: &str, purpose: Purpose) -> Result<Box<dyn File + '_>> {
        if purpose == Purpose::Read {
            return Ok(Box::new(Reading(self.0.attach_read(name)?)));
        }
        let object = self.0.attach(name)?;
        let len = object.len();
        Ok(Box::new(Writing { object, len }))
    }

    fn delete(&self, name: &str) -> Result<()> {
        Ok(self.0.destroy(name)?)
    }

    fn size(&self, name: &str) -> Result<u64> {
        Ok(self.0.stat(name)?.size)
    }
}

impl File for Writing {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.len + bytes.len();
        if end > self.object.len() {
            self.object.grow(end as u64)?;
        }
        self.object.range_mut(self.len..end).copy_from_slice(bytes);
        self.object.psync()?;
        self.len = end;
        Ok(())
    }

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.clear();
        buffer.extend_from_slice(&self.object.as_slice()[..self.len]);
        Ok(())
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
        buffer.clear();
        buffer.extend_from_slice(self.0.as_slice());
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.detach()?)
    }
}
