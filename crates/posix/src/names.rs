//! Names in directories.

use crate::change::{Change, New};
use crate::error::{Error, Result};
use crate::format::{Content, check_name};

/// How a rename treats an existing name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rename {
    /// Replaces it.
    #[default]
    Replace,
    /// Fails with `EEXIST`: `RENAME_NOREPLACE`.
    Keep,
    /// Exchanges the two: `RENAME_EXCHANGE`.
    Exchange,
}

const MISSING: Error = Error::new(libc::ENOENT, "no such file or directory");
const EXISTS: Error = Error::new(libc::EEXIST, "the name exists");
const NOT_EMPTY: Error = Error::new(libc::ENOTEMPTY, "the directory is not empty");
const DIRECTORY: Error = Error::new(libc::EISDIR, "it is a directory");
const NO_DIRECTORY: Error = Error::new(libc::ENOTDIR, "it is no directory");

impl Change<'_> {
    fn find(&self, directory: u64, name: &[u8]) -> Result<Option<u64>> {
        check_name(name)?;
        Ok(self.tree.inode(directory)?.names()?.get(name).copied())
    }

    fn is_directory(&self, number: u64) -> Result<bool> {
        Ok(self.tree.inode(number)?.is_directory())
    }

    fn is_empty(&self, number: u64) -> Result<bool> {
        Ok(match &self.tree.inode(number)?.content {
            Content::Names(names) => names.is_empty(),
            _ => true,
        })
    }

    fn expect_free(&self, directory: u64, name: &[u8]) -> Result<()> {
        match self.find(directory, name) {
            Ok(Some(_)) => Err(EXISTS),
            Err(error) if error.errno() == libc::EINVAL && matches!(name, b"." | b"..") => Err(EXISTS),
            found => {
                found?;
                match self.tree.inode(directory)?.links {
                    0 => Err(MISSING),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Its entries changed, with `directories` more directories.
    fn touch(&mut self, directory: u64, directories: i32) -> Result<()> {
        let now = self.now;
        let inode = self.tree.inode_mut(directory)?;
        inode.links = inode.links.saturating_add_signed(directories);
        (inode.modified, inode.changed) = (now, now);
        Ok(())
    }

    fn mark_changed(&mut self, number: u64) -> Result<()> {
        let now = self.now;
        self.tree.inode_mut(number)?.changed = now;
        Ok(())
    }

    fn inherit<'a>(&self, directory: u64, new: &New<'a>) -> Result<New<'a>> {
        let parent = self.tree.inode(directory)?;
        let mut new = *new;
        if parent.mode & libc::S_ISGID != 0 {
            new.gid = parent.gid;
            if new.mode & libc::S_IFMT == libc::S_IFDIR {
                new.mode |= libc::S_ISGID;
            }
        }
        Ok(new)
    }

    pub(crate) fn create(&mut self, directory: u64, name: &[u8], new: &New<'_>) -> Result<u64> {
        self.expect_free(directory, name)?;
        let new = self.inherit(directory, new)?;
        let number = self.make(&new, directory)?;
        let named = self.tree.inode_mut(directory)?.names_mut()?.try_insert(name, number);
        if let Err(full) = named {
            self.tree.inodes.remove(&number);
            return Err(full.into());
        }
        let directories = i32::from(new.mode & libc::S_IFMT == libc::S_IFDIR);
        self.touch(directory, directories)?;
        Ok(number)
    }

    pub(crate) fn create_unnamed(&mut self, directory: u64, new: &New<'_>, linkable: bool) -> Result<u64> {
        self.tree.inode(directory)?.names()?;
        if new.mode & libc::S_IFMT != libc::S_IFREG {
            return Err(Error::new(libc::EINVAL, "only a file may have no name"));
        }
        let new = self.inherit(directory, new)?;
        let number = self.make(&new, 0)?;
        self.orphan(number)?;
        self.tree.inode_mut(number)?.linkable = linkable.into();
        Ok(number)
    }

    pub(crate) fn link(&mut self, number: u64, directory: u64, name: &[u8]) -> Result<()> {
        let inode = self.tree.inode(number)?;
        if inode.is_directory() {
            return Err(Error::new(libc::EPERM, "a directory has one name"));
        }
        let orphan = inode.links == 0;
        if orphan && inode.linkable == 0 {
            return Err(MISSING);
        }
        if inode.links == u32::MAX {
            return Err(Error::new(libc::EMLINK, "the file has too many names"));
        }
        self.expect_free(directory, name)?;
        self.tree.inode_mut(directory)?.names_mut()?.try_insert(name, number)?;
        if orphan {
            self.adopt(number)?;
        }
        let inode = self.tree.inode_mut(number)?;
        (inode.links, inode.linkable) = (inode.links + 1, 0);
        self.mark_changed(number)?;
        self.touch(directory, 0)
    }

    fn lost_name(&mut self, number: u64) -> Result<()> {
        self.mark_changed(number)?;
        let directory = self.is_directory(number)?;
        let inode = self.tree.inode_mut(number)?;
        inode.links = if directory { 0 } else { inode.links.saturating_sub(1) };
        match inode.links {
            0 => self.unnamed(number),
            _ => Ok(()),
        }
    }

    pub(crate) fn unlink(&mut self, directory: u64, name: &[u8]) -> Result<()> {
        let number = self.find(directory, name)?.ok_or(MISSING)?;
        if self.is_directory(number)? {
            return Err(DIRECTORY);
        }
        self.tree.inode_mut(directory)?.names_mut()?.remove(name);
        self.touch(directory, 0)?;
        self.lost_name(number)
    }

    pub(crate) fn remove_directory(&mut self, directory: u64, name: &[u8]) -> Result<()> {
        if name == b".." {
            return Err(NOT_EMPTY);
        }
        let number = self.find(directory, name)?.ok_or(MISSING)?;
        if !self.is_directory(number)? {
            return Err(NO_DIRECTORY);
        }
        if !self.is_empty(number)? {
            return Err(NOT_EMPTY);
        }
        self.tree.inode_mut(directory)?.names_mut()?.remove(name);
        self.touch(directory, -1)?;
        self.lost_name(number)
    }

    fn expect_outside(&self, number: u64, mut directory: u64) -> Result<()> {
        loop {
            if directory == number {
                return Err(Error::new(libc::EINVAL, "a directory cannot move into itself"));
            }
            let parent = self.tree.inode(directory)?.parent;
            if parent == directory {
                return Ok(());
            }
            directory = parent;
        }
    }

    fn redirect(&mut self, directory: u64, name: &[u8], number: u64) -> Result<()> {
        if let Some(named) = self.tree.inode_mut(directory)?.names_mut()?.get_mut(name) {
            *named = number;
        }
        if self.is_directory(number)? {
            self.tree.inode_mut(number)?.parent = directory;
        }
        self.mark_changed(number)
    }

    pub(crate) fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), how: Rename) -> Result<()> {
        let moved = self.find(from.0, from.1)?.ok_or(MISSING)?;
        let there = self.find(to.0, to.1)?;
        if self.tree.inode(to.0)?.links == 0 {
            return Err(MISSING);
        }
        let directory = self.is_directory(moved)?;
        if directory && from.0 != to.0 {
            self.expect_outside(moved, to.0)?;
        }
        match (how, there) {
            (Rename::Keep, Some(_)) => return Err(EXISTS),
            (Rename::Exchange, None) => return Err(MISSING),
            (_, Some(there)) if there == moved => return Ok(()),
            (Rename::Exchange, Some(there)) => return self.exchange((from, moved), (to, there)),
            (Rename::Keep, None) | (Rename::Replace, _) => {}
        }
        match there {
            Some(there) => {
                match (directory, self.is_directory(there)?) {
                    (true, false) => return Err(NO_DIRECTORY),
                    (false, true) => return Err(DIRECTORY),
                    _ if !self.is_empty(there)? => return Err(NOT_EMPTY),
                    _ => {}
                }
                self.redirect(to.0, to.1, moved)?;
                self.lost_name(there)?;
            }
            None => {
                self.tree.inode_mut(to.0)?.names_mut()?.try_insert(to.1, moved)?;
                self.redirect(to.0, to.1, moved)?;
            }
        }
        self.tree.inode_mut(from.0)?.names_mut()?.remove(from.1);
        self.touch(from.0, -i32::from(directory))?;
        self.touch(to.0, i32::from(directory && there.is_none()))
    }

    fn exchange(
        &mut self,
        ((from, old), moved): ((u64, &[u8]), u64),
        ((to, new), there): ((u64, &[u8]), u64),
    ) -> Result<()> {
        let (goes, comes) = (self.is_directory(moved)?, self.is_directory(there)?);
        if comes && from != to {
            self.expect_outside(there, from)?;
        }
        self.redirect(to, new, moved)?;
        self.redirect(from, old, there)?;
        self.touch(from, i32::from(comes) - i32::from(goes))?;
        self.touch(to, i32::from(goes) - i32::from(comes))
    }
}
