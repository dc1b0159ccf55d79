//! Anchors in files.

use super::{Anchor, INTERVAL};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An anchor in a file: on another disk, a share of another machine, a token. It must be out of reach of those who can put back the pool.
#[derive(Clone, Debug)]
pub struct FileAnchor {
    path: PathBuf,
    interval: Duration,
}

impl FileAnchor {
    /// The file at `path`, which the first attach makes.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> FileAnchor {
        FileAnchor { path: path.as_ref().to_owned(), interval: INTERVAL }
    }

    /// The same with another [interval](Anchor::interval); zero: each psync.
    #[must_use]
    pub fn every(self, interval: Duration) -> FileAnchor {
        FileAnchor { interval, ..self }
    }
}

impl Anchor for FileAnchor {
    fn read(&self) -> io::Result<Option<String>> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write(&self, record: &str) -> io::Result<()> {
        // Another file takes its place, so that it is whole at any moment.
        let mut name = self.path.clone().into_os_string();
        name.push(".new");
        let mut file = File::create(&name)?;
        writeln!(file, "{record}")?;
        file.sync_all()?;
        fs::rename(&name, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}
