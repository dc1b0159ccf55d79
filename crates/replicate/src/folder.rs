//! A store in a local folder: each object is a file, durable once it has its name.

use crate::bucket::{Bucket, Trouble};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Prefix of files without a name; those of killed processes are never read.
const PARTIAL: &str = ".partial-";

/// A folder of this machine, or of a network file system.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    next: AtomicU64,
}

impl Folder {
    /// A store in `root`, created at the first put.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Folder { root: root.into(), next: AtomicU64::new(0) }
    }

    fn write(&self, name: &str, bytes: &[u8], replace: bool) -> io::Result<()> {
        let path = self.root.join(name);
        let folder = path.parent().ok_or(ErrorKind::InvalidInput)?;
        create_durably(folder)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let partial = folder.join(format!("{PARTIAL}{}-{number}", std::process::id()));
        // As pools are: for their owner.
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let named = written
            .and_then(|()| if replace { fs::rename(&partial, &path) } else { name_new(&partial, &path) });
        if named.is_err() {
            let _ = fs::remove_file(&partial);
        }
        named?;
        File::open(folder)?.sync_all()
    }
}

/// Gives a file a name that no file has.
fn name_new(partial: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE) {
        // NFS.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            fs::hard_link(partial, path)?;
            fs::remove_file(partial)
        }
        named => Ok(named?),
    }
}

fn create_durably(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().ok_or(ErrorKind::InvalidInput)?;
    create_durably(above)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(above)?.sync_all()
}

fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        ErrorKind::NotFound => Trouble::Missing,
        ErrorKind::AlreadyExists => Trouble::Taken,
        ErrorKind::PermissionDenied
        | ErrorKind::NotADirectory
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::InvalidInput => Trouble::Refused(error.to_string()),
        // A full disk may have room again.
        _ => Trouble::Unclear(error.to_string()),
    }
}

impl Bucket for Folder {
    fn get(&self, name: &str) -> Result<Vec<u8>, Trouble> {
        fs::read(self.root.join(name)).map_err(|error| trouble(&error))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.write(name, bytes, false).map_err(|error| trouble(&error))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Trouble> {
        self.write(name, bytes, true).map_err(|error| trouble(&error))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, Trouble> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| trouble(&error))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| trouble(&error))?.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with(PARTIAL)) else { continue };
            names.push(format!("{folder}/{name}"));
        }
        names.sort_unstable();
        Ok(names)
    }
}
