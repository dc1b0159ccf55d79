//! Looks at files and directories. Nothing changes, not even access times.

use crate::error::{Error, Result};
use crate::format::{BLOCK, Content, Inode, Time, Tree, check_name};
use std::ops::Bound;

/// The kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, which the kernel serves.
    Fifo,
    /// A socket, which the kernel serves.
    Socket,
}

impl Kind {
    /// The kind in `st_mode`; `None` for device nodes, which volumes lack.
    #[must_use]
    pub const fn of(mode: u32) -> Option<Kind> {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Some(Kind::File),
            libc::S_IFDIR => Some(Kind::Directory),
            libc::S_IFLNK => Some(Kind::Symlink),
            libc::S_IFIFO => Some(Kind::Fifo),
            libc::S_IFSOCK => Some(Kind::Socket),
            _ => None,
        }
    }
}

/// An inode's attributes, as of `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub inode: u64,
    /// Its kind.
    pub kind: Kind,
    /// Kind and permissions.
    pub mode: u32,
    /// Names; of a directory: 2, and one for each directory in it.
    pub links: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Bytes of the pool in its blocks.
    pub held: u64,
    /// Last access time that was set; reads do not change it.
    pub accessed: Time,
    /// Last change of the contents.
    pub modified: Time,
    /// Last change of contents or attributes.
    pub changed: Time,
    /// Creation time.
    pub born: Time,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// At most 255 bytes other than `/` and 0.
    pub name: Vec<u8>,
    /// The inode that it names.
    pub inode: u64,
    /// The kind of that inode.
    pub kind: Kind,
}

/// The target of [`seek`](crate::Volume::seek).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// Bytes in a block.
    Data,
    /// A hole, or the file's end.
    Hole,
}

pub(crate) fn kind(inode: &Inode<'_>) -> Kind {
    match (&inode.content, Kind::of(inode.mode)) {
        (Content::Blocks(_), _) => Kind::File,
        (Content::Names(_), _) => Kind::Directory,
        (Content::Target(_), _) => Kind::Symlink,
        (Content::Nothing, Some(kind)) => kind,
        (Content::Nothing, None) => Kind::Socket,
    }
}

/// A tree with it would be copied to somewhere else.
const NO_NAME: Error = Error::new(libc::EIO, "the volume is damaged: a file in it has no possible name");

impl Tree<'_> {
    pub(crate) fn attributes(&self, number: u64) -> Result<Attributes> {
        let inode = self.inode(number)?;
        let size = match &inode.content {
            Content::Target(target) => target.len() as u64,
            _ => inode.size,
        };
        Ok(Attributes {
            inode: number,
            kind: kind(inode),
            mode: inode.mode,
            links: inode.links,
            uid: inode.uid,
            gid: inode.gid,
            size,
            held: inode.held,
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
            born: inode.born,
        })
    }

    pub(crate) fn lookup(&self, directory: u64, name: &[u8]) -> Result<u64> {
        let inode = self.inode(directory)?;
        let names = inode.names()?;
        match name {
            b"." => Ok(directory),
            b".." => Ok(inode.parent),
            _ if name.len() > 255 => Err(Error::new(libc::ENAMETOOLONG, "a name has at most 255 bytes")),
            _ => names.get(name).copied().ok_or(Error::new(libc::ENOENT, "no such file or directory")),
        }
    }

    pub(crate) fn entries(&self, directory: u64, after: Option<&[u8]>, limit: usize) -> Result<Vec<Entry>> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let names = self.inode(directory)?.names()?.range::<[u8]>((start, Bound::Unbounded));
        let entry = |(name, number): (&indelible::collections::PVec<'_, u8>, &u64)| {
            check_name(name).map_err(|_| NO_NAME)?;
            Ok(Entry { name: name.to_vec(), inode: *number, kind: kind(self.inode(*number)?) })
        };
        names.take(limit).map(entry).collect()
    }

    pub(crate) fn target(&self, number: u64) -> Result<Vec<u8>> {
        match &self.inode(number)?.content {
            Content::Target(target) => Ok(target.to_vec()),
            _ => Err(Error::new(libc::EINVAL, "it is no symbolic link")),
        }
    }

    pub(crate) fn read(&self, number: u64, offset: u64, length: usize) -> Result<Vec<u8>> {
        let inode = self.inode(number)?;
        let blocks = inode.blocks()?;
        let length = length.min(inode.size.saturating_sub(offset).try_into().unwrap_or(usize::MAX));
        let mut bytes = vec![0; length];
        let end = offset + length as u64;
        if length > 0 {
            for (index, block) in blocks.range(offset / BLOCK..end.div_ceil(BLOCK)) {
                let base = index * BLOCK;
                let from = offset.max(base);
                let to = end.min(base + block.len() as u64);
                if from < to {
                    let source = &block[(from - base) as usize..(to - base) as usize];
                    bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
                }
            }
        }
        Ok(bytes)
    }

    pub(crate) fn seek(&self, number: u64, offset: u64, what: Seek) -> Result<u64> {
        let inode = self.inode(number)?;
        let blocks = inode.blocks()?;
        let beyond = Error::new(libc::ENXIO, "no data behind this place");
        if offset >= inode.size {
            return Err(beyond);
        }
        let mut place = offset;
        for (index, block) in blocks.range(offset / BLOCK..) {
            let (start, end) = (index * BLOCK, index * BLOCK + block.len() as u64);
            match what {
                Seek::Data if end > place => return Ok(place.max(start)),
                Seek::Hole if start <= place => place = place.max(end),
                Seek::Hole => break,
                Seek::Data => {}
            }
        }
        match what {
            Seek::Data => Err(beyond),
            Seek::Hole => Ok(place.min(inode.size)),
        }
    }

    pub(crate) fn attribute(&self, number: u64, name: &[u8]) -> Result<Vec<u8>> {
        let value = self.inode(number)?.attributes.get(name).map(|value| value.to_vec());
        value.ok_or(Error::new(libc::ENODATA, "no such attribute"))
    }

    pub(crate) fn attribute_names(&self, number: u64) -> Result<Vec<Vec<u8>>> {
        Ok(self.inode(number)?.attributes.keys().map(|name| name.to_vec()).collect())
    }
}
