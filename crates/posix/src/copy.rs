//! Copies of trees between volumes and folders.

use crate::attributes::Set;
use crate::change::New;
use crate::error::{Error, Result};
use crate::format::{ROOT, Time};
use crate::look::{Attributes, Kind, Seek};
use crate::volume::Volume;
use indelible_files::{Partial, expect_free, sync_folder_of};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const PIECE: usize = 1 << 20;

/// Counts of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes in the files.
    pub bytes: u64,
}

#[derive(Clone, Copy)]
struct Target<'a> {
    partial: &'a Path,
    to: &'a Path,
}

impl Target<'_> {
    fn final_name(self, path: &Path) -> PathBuf {
        match path.strip_prefix(self.partial) {
            Ok(below) if below != "" => self.to.join(below),
            _ => self.to.to_owned(),
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let what = match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory",
        io::ErrorKind::AlreadyExists => "it exists",
        io::ErrorKind::PermissionDenied => "no permission",
        io::ErrorKind::StorageFull => "no room on the file system",
        io::ErrorKind::QuotaExceeded => "the quota is used up",
        io::ErrorKind::FileTooLarge => "the file is too large there",
        _ => "the system failed",
    };
    Error::outside(error.raw_os_error().unwrap_or(libc::EIO), what, path)
}

impl Volume {
    /// Copies a file, a symbolic link or a folder into the volume, with modes, owners and
    /// modification times; an existing name is an error. The next [`sync`](Volume::sync) makes it
    /// durable as one step.
    ///
    /// # Errors
    /// `EEXIST`, `ENOSPC`, and those of reading the source: earlier copies stay in memory.
    /// `EOPNOTSUPP` for FIFOs, sockets and device nodes.
    pub fn copy_in(&mut self, from: &Path, directory: u64, name: &[u8]) -> Result<Copied> {
        let mut copied = Copied::default();
        let mut left = vec![(from.to_owned(), directory, name.to_owned())];
        let mut times = Vec::new();
        while let Some((path, directory, name)) = left.pop() {
            let found = fs::symlink_metadata(&path).map_err(|error| failed(&path, &error))?;
            let mut new = New::of(found.mode(), found.uid(), found.gid());
            let named = |error: Error| error.about(path.display().to_string());
            let inode = match Kind::of(found.mode()) {
                Some(Kind::Directory) => {
                    let inode = self.create_directory(directory, &name, &new).map_err(named)?;
                    copied.directories += 1;
                    for entry in fs::read_dir(&path).map_err(|error| failed(&path, &error))? {
                        let entry = entry.map_err(|error| failed(&path, &error))?;
                        left.push((entry.path(), inode, entry.file_name().as_bytes().to_vec()));
                    }
                    inode
                }
                Some(Kind::File) => {
                    let inode = self.create_file(directory, &name, &new).map_err(named)?;
                    copied.bytes += self.fill(inode, &path)?;
                    copied.files += 1;
                    inode
                }
                Some(Kind::Symlink) => {
                    let target = fs::read_link(&path).map_err(|error| failed(&path, &error))?;
                    new.target = target.as_os_str().as_bytes();
                    copied.links += 1;
                    self.create_link(directory, &name, &new).map_err(named)?
                }
                _ => {
                    let error = Error::new(libc::EOPNOTSUPP, "it is no file, directory or symbolic link");
                    return Err(named(error));
                }
            };
            let modified = Time { seconds: found.mtime(), nanoseconds: found.mtime_nsec() as u64 };
            times.push((inode, Set { modified: Some(modified), ..Set::default() }));
        }
        // A new name changes its directory's time.
        times.iter().try_for_each(|(inode, set)| self.set(*inode, set))?;
        Ok(copied)
    }

    fn fill(&mut self, inode: u64, path: &Path) -> Result<u64> {
        let failed = |error: io::Error| failed(path, &error);
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let (mut piece, mut offset) = (vec![0; PIECE], 0);
        while offset < size {
            let end = match seek(&file, SeekFrom::Data(offset)) {
                Err(Errno::NXIO) => break,
                data => {
                    // The file system knows no holes.
                    offset = data.unwrap_or(offset);
                    seek(&file, SeekFrom::Hole(offset)).unwrap_or(size)
                }
            };
            while offset < end {
                let wanted = piece.len().min((end - offset) as usize);
                match file.read_at(&mut piece[..wanted], offset) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The file was truncated meanwhile.
                    Ok(0) => return Ok(offset),
                    read => {
                        let read = read.map_err(failed)?;
                        let written = self.write(inode, offset, &piece[..read]);
                        written.map_err(|error| error.about(path.display().to_string()))?;
                        offset += read as u64;
                    }
                }
            }
        }
        offset = offset.max(size);
        // Files of /proc have a length of 0, and a file may grow meanwhile.
        loop {
            match file.read_at(&mut piece, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => match read.map_err(failed)? {
                    0 => break,
                    read => {
                        let written = self.write(inode, offset, &piece[..read]);
                        written.map_err(|error| error.about(path.display().to_string()))?;
                        offset += read as u64;
                    }
                },
            }
        }
        self.set(inode, &Set { size: Some(offset), ..Set::default() })?;
        Ok(offset)
    }

    /// Copies an inode and its tree to a new path of the system, with modes and modification times,
    /// without FIFOs and sockets in it. The copy has its name once it is whole and durable; until
    /// then it is beside, as `NAME.PID.partial`.
    ///
    /// # Errors
    /// Those of writing the target; `EEXIST`: it exists. Nothing is left of the copy.
    /// `EOPNOTSUPP` for a FIFO or a socket.
    pub fn copy_out(&self, inode: u64, to: &Path) -> Result<Copied> {
        let outside = |error: io::Error| failed(to, &error);
        let found = self.attributes(inode)?;
        let (partial, copied) = match found.kind {
            Kind::Directory => {
                let partial = expect_free(to).and_then(|()| Partial::folder(to)).map_err(outside)?;
                let copied = self.copy_tree(found, Target { partial: partial.path(), to })?;
                (partial, copied)
            }
            Kind::File => {
                let partial = expect_free(to).and_then(|()| Partial::file(to, 0o600)).map_err(outside)?;
                self.write_to(&found, partial.opened(), to)?;
                (partial, Copied { files: 1, bytes: found.size, ..Copied::default() })
            }
            Kind::Symlink => {
                let target = PathBuf::from(OsStr::from_bytes(&self.read_link(inode)?));
                symlink(target, to).and_then(|()| sync_folder_of(to)).map_err(outside)?;
                return Ok(Copied { links: 1, ..Copied::default() });
            }
            Kind::Fifo | Kind::Socket => {
                return Err(Error::new(libc::EOPNOTSUPP, "it is no file, directory or symbolic link"));
            }
        };
        partial.publish(to).map_err(outside)?;
        Ok(copied)
    }

    fn copy_tree(&self, root: Attributes, target: Target<'_>) -> Result<Copied> {
        let mut copied = Copied { directories: 1, ..Copied::default() };
        let mut left = Vec::new();
        let mut made = vec![(root, target.partial.to_owned())];
        let mut next = 0;
        while let Some((found, path)) = made.get(next) {
            for entry in self.entries(found.inode, None, usize::MAX)? {
                left.push((entry.inode, path.join(OsStr::from_bytes(&entry.name))));
            }
            next += 1;
            for (inode, path) in left.drain(..) {
                let outside = |error: io::Error| failed(&target.final_name(&path), &error);
                let found = self.attributes(inode)?;
                match found.kind {
                    Kind::Directory => {
                        fs::DirBuilder::new().mode(0o700).create(&path).map_err(outside)?;
                        copied.directories += 1;
                        made.push((found, path));
                    }
                    Kind::File => {
                        let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
                        self.write_to(&found, &file.map_err(outside)?, &target.final_name(&path))?;
                        copied.files += 1;
                        copied.bytes += found.size;
                    }
                    Kind::Symlink => {
                        let link = PathBuf::from(OsStr::from_bytes(&self.read_link(inode)?));
                        symlink(link, &path).map_err(outside)?;
                        copied.links += 1;
                    }
                    Kind::Fifo | Kind::Socket => {}
                }
            }
        }
        // From below: modes and new entries would change earlier times.
        for (found, path) in made.iter().rev() {
            let opened = File::open(path).and_then(|folder| settle(&folder, found));
            opened.map_err(|error| failed(&target.final_name(path), &error))?;
        }
        Ok(copied)
    }

    fn write_to(&self, found: &Attributes, file: &File, named: &Path) -> Result<()> {
        let outside = |error: io::Error| failed(named, &error);
        file.set_len(found.size).map_err(outside)?;
        let mut offset = 0;
        while let Ok(place) = self.seek(found.inode, offset, Seek::Data) {
            let piece = self.read(found.inode, place, PIECE)?;
            file.write_all_at(&piece, place).map_err(outside)?;
            offset = place + piece.len() as u64;
        }
        settle(file, found).map_err(outside)
    }

    /// The target of a copy of `name`: in `path` if that is a directory, else at `path`.
    ///
    /// # Errors
    /// As for [`find`](Volume::find).
    pub fn place_for(&self, path: &[u8], name: &[u8]) -> Result<(u64, Vec<u8>)> {
        match self.find(path) {
            Ok(inode) if inode == ROOT || self.attributes(inode)?.kind == Kind::Directory => {
                Ok((inode, name.to_vec()))
            }
            _ => self.find_parent(path).map(|(directory, name)| (directory, name.to_vec())),
        }
    }
}

fn settle(file: &File, found: &Attributes) -> io::Result<()> {
    let since = Duration::new(found.modified.seconds.max(0) as u64, found.modified.nanoseconds as u32);
    file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + since))?;
    // Bits that lend the owner's rights, and the group's, only if the copy has that owner or group.
    let made = file.metadata()?;
    let lent = [(0o4000, made.uid() == found.uid), (0o2000, made.gid() == found.gid)];
    let lost: u32 = lent.iter().filter(|(_, same)| !same).map(|(bit, _)| bit).sum();
    file.set_permissions(Permissions::from_mode(found.mode & 0o7777 & !lost))
}
