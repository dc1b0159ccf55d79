//! A change of a volume: its tree, borrowed for storing.
//!
//! Each operation allocates before it changes, so that a full pool changes nothing.

use crate::error::{Error, Result};
use crate::format::{Content, Inode, ROOT, Time, Tree};
use indelible::collections::{HeapRef, PBTreeMap, PBox, PVec};
use std::collections::HashMap;

pub(crate) struct Change<'h> {
    pub(crate) tree: &'h mut Tree<'h>,
    pub(crate) heap: HeapRef<'h>,
    pub(crate) now: Time,
    pub(crate) held: &'h HashMap<u64, u64>,
}

/// Kind, mode and owner of a new inode.
#[derive(Clone, Copy, Debug)]
pub struct New<'a> {
    /// `st_mode`: kind and permissions. Device nodes are refused.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group, unless the directory's is inherited.
    pub gid: u32,
    /// A symbolic link's target.
    pub target: &'a [u8],
}

impl New<'_> {
    /// Owner, group and mode of an inode without a target.
    #[must_use]
    pub const fn of(mode: u32, uid: u32, gid: u32) -> New<'static> {
        New { mode, uid, gid, target: &[] }
    }
}

impl<'h> Change<'h> {
    /// Without a name. A failed inode's number is not reused.
    pub(crate) fn make(&mut self, new: &New<'_>, parent: u64) -> Result<u64> {
        let heap = self.heap;
        let (content, links) = match new.mode & libc::S_IFMT {
            libc::S_IFREG => (Content::Blocks(PBTreeMap::new_in(heap)), 1),
            libc::S_IFDIR => (Content::Names(PBTreeMap::new_in(heap)), 2),
            libc::S_IFLNK => {
                let fits = (1..=4095).contains(&new.target.len()) && !new.target.contains(&0);
                if !fits {
                    return Err(Error::new(libc::ENAMETOOLONG, "a link's target has 1 to 4095 bytes"));
                }
                (Content::Target(PVec::try_from_slice_in(new.target, heap)?), 1)
            }
            libc::S_IFIFO | libc::S_IFSOCK => (Content::Nothing, 1),
            _ => return Err(Error::new(libc::EPERM, "volumes hold no device nodes")),
        };
        let number = self.tree.last + 1;
        let now = self.now;
        let inode = Inode {
            mode: new.mode,
            uid: new.uid,
            gid: new.gid,
            links,
            size: 0,
            held: 0,
            accessed: now,
            modified: now,
            changed: now,
            born: now,
            parent: if links == 2 { parent } else { 0 },
            before: 0,
            behind: 0,
            linkable: 0,
            attributes: PBTreeMap::new_in(heap),
            content,
        };
        let inode = PBox::try_new_in(inode, heap)?;
        self.tree.inodes.try_insert(number, inode)?;
        self.tree.last = number;
        Ok(number)
    }

    pub(crate) fn make_root(&mut self, new: &New<'_>) -> Result<()> {
        self.tree.last = ROOT - 1;
        self.make(new, ROOT).map(drop)
    }

    /// Removes an inode without a name, or keeps it as an orphan while it is held.
    pub(crate) fn unnamed(&mut self, number: u64) -> Result<()> {
        match self.held.contains_key(&number) {
            true => self.orphan(number),
            false => {
                self.tree.inodes.remove(&number);
                Ok(())
            }
        }
    }

    pub(crate) fn orphan(&mut self, number: u64) -> Result<()> {
        let first = self.tree.orphans;
        if first != 0 {
            self.tree.inode_mut(first)?.before = number;
        }
        let inode = self.tree.inode_mut(number)?;
        (inode.links, inode.before, inode.behind) = (0, 0, first);
        self.tree.orphans = number;
        Ok(())
    }

    pub(crate) fn adopt(&mut self, number: u64) -> Result<()> {
        let inode = self.tree.inode_mut(number)?;
        let (before, behind) = (inode.before, inode.behind);
        (inode.before, inode.behind) = (0, 0);
        match before {
            0 => self.tree.orphans = behind,
            _ => self.tree.inode_mut(before)?.behind = behind,
        }
        if behind != 0 {
            self.tree.inode_mut(behind)?.before = before;
        }
        Ok(())
    }

    pub(crate) fn released(&mut self, number: u64) -> Result<()> {
        if self.tree.inode(number).is_ok_and(|inode| inode.links == 0) {
            self.adopt(number)?;
            self.tree.inodes.remove(&number);
        }
        Ok(())
    }

    /// Removes all orphans: no program has one open.
    pub(crate) fn collect_orphans(&mut self) -> Result<u64> {
        let mut removed = 0;
        while self.tree.orphans != 0 {
            self.released(self.tree.orphans)?;
            removed += 1;
        }
        Ok(removed)
    }
}
