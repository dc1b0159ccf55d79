//! File backends: they keep files by name, and make every update durable.

mod dram;
mod files;
mod in_place;
mod own;
mod replaced;

use crate::Result;
use crate::environment::Medium;
use std::path::Path;

/// Purpose of opening a file: whether anything is going to be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Read,
    Append,
}

/// Keeps files by name, for several threads. No two use a file at the same time.
pub trait FileBackend: Sync {
    /// Makes a folder with all that lead to it, if it is not there.
    fn folder(&self, path: &str) -> Result<()>;

    /// A new, empty file, opened; `room` bytes will be written to it first, and it will never have
    /// more than `most`.
    fn create(&self, name: &str, room: usize, most: usize) -> Result<Box<dyn File + '_>>;

    fn open(&self, name: &str, purpose: Purpose) -> Result<Box<dyn File + '_>>;

    fn delete(&self, name: &str) -> Result<()>;

    /// Bytes of a file.
    fn size(&self, name: &str) -> Result<u64>;
}

/// A file that is open.
pub trait File: Send {
    /// Writes at the end of the file; durable when it returns.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Reads all of it.
    fn read(&mut self, buffer: &mut Vec<u8>) -> Result<()>;

    fn close(self: Box<Self>) -> Result<()>;
}

/// A backend that can be measured.
pub struct Contestant {
    pub name: &'static str,
    /// Whether a crash leaves each file as one update left it.
    pub atomic: bool,
    pub open: fn(&Place<'_>) -> Result<Box<dyn FileBackend>>,
}

/// Medium and folder of the files.
pub struct Place<'a> {
    pub medium: Medium,
    /// An empty folder on the medium.
    pub dir: &'a Path,
    /// Bytes that there is need for.
    pub len: u64,
}

/// No persistence at all.
pub const DRAM: Contestant = Contestant { name: "DRAM", atomic: false, open: dram::open };
/// Baselines of losses.
pub const IN_PLACE: Contestant = Contestant { name: "in place", atomic: false, open: in_place::open };
pub const OWN: Contestant = Contestant { name: "indelible", atomic: true, open: own::open };
pub const FILES: Contestant = Contestant { name: "files, fsync", atomic: false, open: files::open };
const REPLACED: Contestant = Contestant { name: "copy and rename", atomic: true, open: replaced::open };

/// All backends.
pub fn all() -> [&'static Contestant; 5] {
    [&DRAM, &IN_PLACE, &OWN, &FILES, &REPLACED]
}
