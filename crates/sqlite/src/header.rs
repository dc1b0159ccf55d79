//! The first page of an object that holds a database. The bytes of SQLite's file follow it.

use crate::failure::{Failure, Result, code};
use indelible::{Object, Plain, ReadObject};

/// Offset in the object of the file's first byte.
pub(crate) const START: usize = 4096;

const MAGIC: [u8; 16] = *b"SQLite in object";
const VERSION: u32 = 1;

/// Zeros in a new object.
#[derive(Plain, Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    magic: [u8; 16],
    version: u32,
    reserved: u32,
    pub(crate) length: u64,
    /// Psyncs of the database: equal numbers mean equal contents.
    pub(crate) commits: u64,
}

impl Header {
    pub(crate) fn empty() -> Header {
        Header::new(0)
    }

    pub(crate) fn new(length: u64) -> Header {
        Header { magic: MAGIC, version: VERSION, reserved: 0, length, commits: 0 }
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.magic == [0; 16]
    }

    /// Refuses an object that is no database. `bytes` is the whole object.
    fn check(self, bytes: &[u8], name: &str) -> Result<Header> {
        let refused = |code, why: &str| Err(Failure::new(code, format!("object {name:?} {why}")));
        if self.is_blank() {
            if bytes.iter().take(START).any(|byte| *byte != 0) {
                return refused(code::NOTADB, "holds no database");
            }
            return Ok(Header::empty());
        }
        if self.magic != MAGIC {
            return refused(code::NOTADB, "holds no database");
        }
        if self.version != VERSION {
            return refused(code::CANTOPEN, "holds a database of a newer version of this extension");
        }
        if self.length > (bytes.len() - START) as u64 {
            return refused(code::CORRUPT, "is shorter than its database");
        }
        Ok(self)
    }

    pub(crate) fn of(object: &Object) -> Result<Header> {
        if object.len() < START {
            return Err(too_small(object.name()));
        }
        object.root::<Header>()?.check(object.as_slice(), object.name())
    }

    pub(crate) fn read(object: &ReadObject) -> Result<Header> {
        if object.len() < START {
            return Err(too_small(object.name()));
        }
        object.root::<Header>()?.check(object.as_slice(), object.name())
    }
}

fn too_small(name: &str) -> Failure {
    Failure::new(code::NOTADB, format!("object {name:?} is too small for a database"))
}

/// Copies bytes of the file at `offset`, with zeros behind its end. Returns whether the file has
/// all of them.
pub(crate) fn copy(object: &[u8], length: u64, offset: u64, buffer: &mut [u8]) -> bool {
    let there = length.saturating_sub(offset).min(buffer.len() as u64) as usize;
    let (bytes, rest) = buffer.split_at_mut(there);
    if there > 0 {
        let from = START + offset as usize;
        bytes.copy_from_slice(&object[from..from + there]);
    }
    rest.fill(0);
    rest.is_empty()
}
