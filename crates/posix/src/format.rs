//! Types in a volume's heap.
//!
//! Invariants, which [`check`](crate::Volume::check) verifies:
//! 1. Inode 1 is the root directory. Numbers are never reused.
//! 2. An inode has a name in a directory, or is in the list of orphans: open files without a name.
//!    The next open of the volume removes them.
//! 3. A block has at most [`BLOCK`] bytes; bytes behind its length, and absent blocks, are zeros.
//!    No block reaches beyond the file's end.

use crate::error::{Error, Result};
use indelible::Persist;
use indelible::collections::{PBTreeMap, PBox, PVec};

/// Bytes of a file in one block of the heap.
pub(crate) const BLOCK: u64 = 64 << 10;
/// The root directory.
pub const ROOT: u64 = 1;
pub(crate) const NAME: &str = "volume";

pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    match name {
        b"" => Err(Error::new(libc::ENOENT, "no such file or directory")),
        b"." | b".." => Err(Error::new(libc::EINVAL, "every directory has this name")),
        _ if name.len() > 255 => Err(Error::new(libc::ENAMETOOLONG, "a name has at most 255 bytes")),
        _ if name.iter().any(|byte| matches!(byte, 0 | b'/')) => {
            Err(Error::new(libc::EINVAL, "a name has neither / nor 0"))
        }
        _ => Ok(()),
    }
}

pub(crate) type Blocks<'h> = PBTreeMap<'h, u64, PVec<'h, u8>>;
pub(crate) type Names<'h> = PBTreeMap<'h, PVec<'h, u8>, u64>;

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Persist)]
#[repr(C)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Below 10⁹.
    pub nanoseconds: u64,
}

#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Tree<'h> {
    pub(crate) last: u64,
    /// The first orphan, or 0.
    pub(crate) orphans: u64,
    pub(crate) inodes: PBTreeMap<'h, u64, PBox<'h, Inode<'h>>>,
}

#[derive(Persist)]
#[repr(C)]
pub(crate) struct Inode<'h> {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    /// A file's bytes.
    pub(crate) size: u64,
    /// Bytes of its blocks in the heap.
    pub(crate) held: u64,
    pub(crate) accessed: Time,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    pub(crate) born: Time,
    /// A directory's parent.
    pub(crate) parent: u64,
    /// Neighbours among the orphans.
    pub(crate) before: u64,
    pub(crate) behind: u64,
    /// 1: a file made without a name, which may get one.
    pub(crate) linkable: u64,
    pub(crate) attributes: PBTreeMap<'h, PVec<'h, u8>, PVec<'h, u8>>,
    pub(crate) content: Content<'h>,
}

#[derive(Persist)]
#[repr(C, u64)]
pub(crate) enum Content<'h> {
    Nothing,
    Blocks(Blocks<'h>),
    Names(Names<'h>),
    Target(PVec<'h, u8>),
}

impl<'h> Tree<'h> {
    pub(crate) fn inode(&self, number: u64) -> Result<&Inode<'h>> {
        self.inodes.get(&number).map(|inode| &**inode).ok_or(STALE)
    }

    pub(crate) fn inode_mut(&mut self, number: u64) -> Result<&mut Inode<'h>> {
        self.inodes.get_mut(&number).map(|inode| &mut **inode).ok_or(STALE)
    }
}

impl<'h> Inode<'h> {
    pub(crate) fn blocks(&self) -> Result<&Blocks<'h>> {
        match &self.content {
            Content::Blocks(blocks) => Ok(blocks),
            _ => Err(self.no_file()),
        }
    }

    pub(crate) fn blocks_mut(&mut self) -> Result<&mut Blocks<'h>> {
        let error = self.no_file();
        match &mut self.content {
            Content::Blocks(blocks) => Ok(blocks),
            _ => Err(error),
        }
    }

    const fn no_file(&self) -> Error {
        match self.content {
            Content::Names(_) => Error::new(libc::EISDIR, "it is a directory"),
            _ => Error::new(libc::EINVAL, "it is no file"),
        }
    }

    pub(crate) fn names(&self) -> Result<&Names<'h>> {
        match &self.content {
            Content::Names(names) => Ok(names),
            _ => Err(NO_DIRECTORY),
        }
    }

    pub(crate) fn names_mut(&mut self) -> Result<&mut Names<'h>> {
        match &mut self.content {
            Content::Names(names) => Ok(names),
            _ => Err(NO_DIRECTORY),
        }
    }

    pub(crate) const fn is_directory(&self) -> bool {
        matches!(self.content, Content::Names(_))
    }
}

const STALE: Error = Error::new(libc::ESTALE, "the file is gone");
const NO_DIRECTORY: Error = Error::new(libc::ENOTDIR, "it is no directory");
