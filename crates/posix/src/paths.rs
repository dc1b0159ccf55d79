//! Paths: from names to inodes, and back for errors.

use crate::error::{Error, Result};
use crate::format::{ROOT, Tree};
use crate::volume::Volume;

impl Volume {
    /// The inode at a path from the root. Symbolic links are not followed.
    ///
    /// # Errors
    /// As for [`lookup`](Volume::lookup); the text names the path.
    pub fn find(&self, path: &[u8]) -> Result<u64> {
        let mut inode = ROOT;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let found = self.lookup(inode, name);
            inode = found.map_err(|error| error.about(String::from_utf8_lossy(path)))?;
        }
        Ok(inode)
    }

    /// The directory of a path's last name, and that name.
    ///
    /// # Errors
    /// As for [`find`](Volume::find); `EINVAL` for the root directory.
    pub fn find_parent<'p>(&self, path: &'p [u8]) -> Result<(u64, &'p [u8])> {
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let path = &path[..end];
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        match path[start..].is_empty() {
            true => Err(Error::new(libc::EINVAL, "the root directory has no name")),
            false => Ok((self.find(&path[..start])?, &path[start..])),
        }
    }

    /// An inode's path, for errors, by a search of all undamaged directories.
    pub(crate) fn path_of(&self, inode: u64) -> String {
        let mut names = Vec::new();
        let mut number = inode;
        while number != ROOT && names.len() < 100 {
            let Some((parent, name)) = self.name_of(number) else {
                return format!("inode {inode}");
            };
            names.push(name);
            number = parent;
        }
        names.reverse();
        format!("/{}", names.join("/"))
    }

    fn name_of(&self, inode: u64) -> Option<(u64, String)> {
        let mut directories = vec![ROOT];
        while let Some(directory) = directories.pop() {
            let found = self.look(|tree| Ok(named_in(tree, directory, inode, &mut directories)));
            if let Ok(Some(name)) = found {
                return Some((directory, name));
            }
        }
        None
    }
}

fn named_in(tree: &Tree<'_>, directory: u64, inode: u64, more: &mut Vec<u64>) -> Option<String> {
    let names = tree.inode(directory).ok()?.names().ok()?;
    for (name, number) in names.iter() {
        if *number == inode {
            return Some(String::from_utf8_lossy(name).into_owned());
        }
        if tree.inode(*number).is_ok_and(|inode| inode.is_directory()) {
            more.push(*number);
        }
    }
    None
}
