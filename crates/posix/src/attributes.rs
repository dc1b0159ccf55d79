//! Attributes of inodes: mode, owner, times, and extended ones.

use crate::change::Change;
use crate::error::{Error, Result};
use crate::format::Time;
use indelible::collections::PVec;

/// Linux's limit of an extended attribute.
const LONGEST: usize = 64 << 10;

/// Attributes to set; `None` keeps the former value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Permissions without the kind.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// Length of a file.
    pub size: Option<u64>,
    /// Time of the last access.
    pub accessed: Option<Time>,
    /// Time of the last change of the contents.
    pub modified: Option<Time>,
}

/// Whether an extended attribute may exist already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// It may exist.
    #[default]
    Any,
    /// It must not exist: `XATTR_CREATE`.
    Refuse,
    /// It must exist: `XATTR_REPLACE`.
    Require,
}

impl Change<'_> {
    pub(crate) fn set(&mut self, number: u64, set: &Set) -> Result<()> {
        self.tree.inode(number)?;
        if let Some(size) = set.size {
            self.truncate(number, size)?;
        }
        let now = self.now;
        let inode = self.tree.inode_mut(number)?;
        if let Some(mode) = set.mode {
            inode.mode = inode.mode & libc::S_IFMT | mode & 0o7777;
        }
        inode.uid = set.uid.unwrap_or(inode.uid);
        inode.gid = set.gid.unwrap_or(inode.gid);
        inode.accessed = set.accessed.unwrap_or(inode.accessed);
        inode.modified = set.modified.unwrap_or(inode.modified);
        inode.changed = now;
        Ok(())
    }

    pub(crate) fn set_attribute(
        &mut self,
        number: u64,
        name: &[u8],
        value: &[u8],
        existing: Existing,
    ) -> Result<()> {
        if !(1..=255).contains(&name.len()) || name.contains(&0) {
            return Err(Error::new(libc::ERANGE, "an attribute's name has 1 to 255 bytes, and no 0"));
        }
        if value.len() > LONGEST {
            return Err(Error::new(libc::E2BIG, "an attribute has at most 64 KiB"));
        }
        let (heap, now) = (self.heap, self.now);
        let inode = self.tree.inode_mut(number)?;
        match (existing, inode.attributes.contains_key(name)) {
            (Existing::Refuse, true) => return Err(Error::new(libc::EEXIST, "the attribute exists")),
            (Existing::Require, false) => return Err(MISSING),
            _ => {}
        }
        let value = PVec::try_from_slice_in(value, heap)?;
        inode.attributes.try_insert(name, value)?;
        inode.changed = now;
        Ok(())
    }

    pub(crate) fn remove_attribute(&mut self, number: u64, name: &[u8]) -> Result<()> {
        let now = self.now;
        let inode = self.tree.inode_mut(number)?;
        inode.attributes.remove(name).ok_or(MISSING)?;
        inode.changed = now;
        Ok(())
    }
}

const MISSING: Error = Error::new(libc::ENODATA, "no such attribute");
