//! The operations of a volume, one method each.

use crate::attributes::{Existing, Set};
use crate::change::New;
use crate::data::Allocate;
use crate::error::{Error, Result};
use crate::look::{Attributes, Entry, Seek};
use crate::names::Rename;
use crate::volume::Volume;
use std::ops::Range;

/// Methods fail as the system calls of their names; [`Error::errno`] has the number. A failed one
/// changes nothing. Damage is `EIO`, and the text names the file.
impl Volume {
    /// The attributes of an inode.
    ///
    /// # Errors
    /// `ESTALE`: no such inode.
    pub fn attributes(&self, inode: u64) -> Result<Attributes> {
        self.named(inode, self.look(|tree| tree.attributes(inode)))
    }

    /// The inode of a name, `.` and `..` included.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`, `ESTALE`.
    pub fn lookup(&self, directory: u64, name: &[u8]) -> Result<u64> {
        self.named(directory, self.look(|tree| tree.lookup(directory, name)))
    }

    /// At most `limit` names of a directory after `after`, by their bytes, without `.` and `..`.
    ///
    /// # Errors
    /// `ENOTDIR`, `ESTALE`.
    pub fn entries(&self, directory: u64, after: Option<&[u8]>, limit: usize) -> Result<Vec<Entry>> {
        self.named(directory, self.look(|tree| tree.entries(directory, after, limit)))
    }

    /// A symbolic link's target.
    ///
    /// # Errors
    /// `EINVAL`: no link. `ESTALE`.
    pub fn read_link(&self, inode: u64) -> Result<Vec<u8>> {
        self.named(inode, self.look(|tree| tree.target(inode)))
    }

    /// At most `length` bytes; fewer at the file's end.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL`, `ESTALE`.
    pub fn read(&self, inode: u64, offset: u64, length: usize) -> Result<Vec<u8>> {
        self.named(inode, self.look(|tree| tree.read(inode, offset, length)))
    }

    /// The next data or hole from `offset`.
    ///
    /// # Errors
    /// `ENXIO`: there is none. `EISDIR`, `EINVAL`, `ESTALE`.
    pub fn seek(&self, inode: u64, offset: u64, what: Seek) -> Result<u64> {
        self.named(inode, self.look(|tree| tree.seek(inode, offset, what)))
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// `ENODATA`, `ESTALE`.
    pub fn attribute(&self, inode: u64, name: &[u8]) -> Result<Vec<u8>> {
        self.named(inode, self.look(|tree| tree.attribute(inode, name)))
    }

    /// The names of all extended attributes.
    ///
    /// # Errors
    /// `ESTALE`.
    pub fn attribute_names(&self, inode: u64) -> Result<Vec<Vec<u8>>> {
        self.named(inode, self.look(|tree| tree.attribute_names(inode)))
    }

    /// Makes an inode of any kind; returns its number.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`, `EPERM` for a device node, `ENOSPC`, `EROFS`,
    /// `ESTALE`.
    pub fn create_node(&mut self, directory: u64, name: &[u8], new: &New<'_>) -> Result<u64> {
        let done = self.change(|change| change.create(directory, name, new));
        self.named(directory, done)
    }

    /// As [`create_node`](Volume::create_node), of a regular file; the mode's kind is ignored.
    ///
    /// # Errors
    /// As for [`create_node`](Volume::create_node).
    pub fn create_file(&mut self, directory: u64, name: &[u8], new: &New<'_>) -> Result<u64> {
        self.create_node(directory, name, &New { mode: new.mode & 0o7777 | libc::S_IFREG, ..*new })
    }

    /// As [`create_node`](Volume::create_node), of a directory.
    ///
    /// # Errors
    /// As for [`create_node`](Volume::create_node).
    pub fn create_directory(&mut self, directory: u64, name: &[u8], new: &New<'_>) -> Result<u64> {
        self.create_node(directory, name, &New { mode: new.mode & 0o7777 | libc::S_IFDIR, ..*new })
    }

    /// As [`create_node`](Volume::create_node), of a symbolic link to `new.target`.
    ///
    /// # Errors
    /// As for [`create_node`](Volume::create_node).
    pub fn create_link(&mut self, directory: u64, name: &[u8], new: &New<'_>) -> Result<u64> {
        self.create_node(directory, name, &New { mode: 0o777 | libc::S_IFLNK, ..*new })
    }

    /// Makes a file without a name, as `O_TMPFILE`, and [holds](Volume::hold) it once. `linkable`:
    /// [`link`](Volume::link) may name it.
    ///
    /// # Errors
    /// As for [`create_node`](Volume::create_node).
    pub fn create_unnamed(&mut self, directory: u64, new: &New<'_>, linkable: bool) -> Result<u64> {
        let new = New { mode: new.mode & 0o7777 | libc::S_IFREG, ..*new };
        let done = self.change(|change| change.create_unnamed(directory, &new, linkable));
        let inode = self.named(directory, done)?;
        self.hold(inode)?;
        Ok(inode)
    }

    /// Gives a file one more name.
    ///
    /// # Errors
    /// `EPERM` for a directory, `EMLINK`, and as for [`create_node`](Volume::create_node).
    pub fn link(&mut self, inode: u64, directory: u64, name: &[u8]) -> Result<()> {
        let done = self.change(|change| change.link(inode, directory, name));
        self.named(directory, done)
    }

    /// Removes a name, and with the last one the file, unless it is [held](Volume::hold).
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `ENOTDIR`, `EROFS`, `ESTALE`.
    pub fn unlink(&mut self, directory: u64, name: &[u8]) -> Result<()> {
        let done = self.change(|change| change.unlink(directory, name));
        self.named(directory, done)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOENT`, `ENOTDIR`, `EROFS`, `ESTALE`.
    pub fn remove_directory(&mut self, directory: u64, name: &[u8]) -> Result<()> {
        let done = self.change(|change| change.remove_directory(directory, name));
        self.named(directory, done)
    }

    /// Moves a file's or directory's name within the volume.
    ///
    /// # Errors
    /// `EINVAL`: a directory into itself. `EEXIST`, `ENOENT`, `ENOTEMPTY`, `EISDIR`, `ENOTDIR`,
    /// `ENOSPC`, `EROFS`, `ESTALE`.
    pub fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), how: Rename) -> Result<()> {
        let done = self.change(|change| change.rename(from, to, how));
        self.named(from.0, done)
    }

    /// Stores all bytes or none at a place of a file, which grows as needed.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, `EISDIR`, `EINVAL`, `EROFS`, `ESTALE`.
    pub fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let done = self.change(|change| change.write(inode, offset, bytes));
        self.named(inode, done)
    }

    /// Reserves or frees a range of a file.
    ///
    /// # Errors
    /// As for [`write`](Volume::write).
    pub fn allocate(&mut self, inode: u64, range: Range<u64>, how: Allocate) -> Result<()> {
        let length = range.end.saturating_sub(range.start);
        if how != Allocate::Punch && length > 1 << 20 && length > self.room()?.free {
            return Err(Error::new(libc::ENOSPC, "no room in the pool"));
        }
        let done = self.change(|change| change.allocate(inode, range, how));
        self.named(inode, done)
    }

    /// Sets attributes: mode, owner, length, times.
    ///
    /// # Errors
    /// `EFBIG`, `EISDIR`, `EROFS`, `ESTALE`.
    pub fn set(&mut self, inode: u64, set: &Set) -> Result<()> {
        let done = self.change(|change| change.set(inode, set));
        self.named(inode, done)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA`, `ERANGE`, `E2BIG`, `ENOSPC`, `EROFS`, `ESTALE`.
    pub fn set_attribute(&mut self, inode: u64, name: &[u8], value: &[u8], existing: Existing) -> Result<()> {
        let done = self.change(|change| change.set_attribute(inode, name, value, existing));
        self.named(inode, done)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `ENODATA`, `EROFS`, `ESTALE`.
    pub fn remove_attribute(&mut self, inode: u64, name: &[u8]) -> Result<()> {
        let done = self.change(|change| change.remove_attribute(inode, name));
        self.named(inode, done)
    }

    fn named<R>(&self, inode: u64, done: Result<R>) -> Result<R> {
        done.map_err(|error| match error.errno() {
            libc::EIO => error.about(self.path_of(inode)),
            _ => error,
        })
    }
}
