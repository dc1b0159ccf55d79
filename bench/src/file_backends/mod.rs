//! File backends: named files whose updates are durable.

mod dram;
mod files;
mod in_place;
mod own;
mod replaced;

use crate::Result;
use crate::environment::Medium;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Read,
    Append,
}

/// Named files for several threads; a file has one user at a time.
pub trait FileBackend: Sync {
    fn folder(&self, path: &str) -> Result<()>;

    /// A new, empty, open file; the first write has `room` bytes, and the file at most `most`.
    fn create(&self, name: &str, room: usize, most: usize) -> Result<Box<dyn File + '_>>;

    fn open(&self, name: &str, purpose: Purpose) -> Result<Box<dyn File + '_>>;

    fn delete(&self, name: &str) -> Result<()>;

    fn size(&self, name: &str) -> Result<u64>;
}

pub trait File: Send {
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()>;

    fn close(self: Box<Self>) -> Result<()>;
}

pub struct Contestant {
    pub name: &'static str,
    pub atomic: bool,
    pub open: fn(&Place<'_>) -> Result<Box<dyn FileBackend>>,
}

pub struct Place<'a> {
    pub medium: Medium,
    pub dir: &'a Path,
    pub len: u64,
}

pub const DRAM: Contestant = Contestant { name: "DRAM", atomic: false, open: dram::open };
pub const IN_PLACE: Contestant = Contestant { name: "in place", atomic: false, open: in_place::open };
pub const OWN: Contestant = Contestant { name: "indelible", atomic: true, open: own::open };
pub const FILES: Contestant = Contestant { name: "files, fsync", atomic: false, open: files::open };
const REPLACED: Contestant = Contestant { name: "copy and rename", atomic: true, open: replaced::open };

pub fn all() -> [&'static Contestant; 5] {
    [&DRAM, &IN_PLACE, &OWN, &FILES, &REPLACED]
}
