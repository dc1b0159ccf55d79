//! Anchors: something outside of the pool that keeps a number, by which an older state of a sealed object is told from the newest.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Keeps a record of a sealed object where an attacker who has the pool does not get. The record is a line of text of at most 200 bytes, and is no secret.
///
/// An object is attached with its anchor by a key that has one ([`SealKey::anchored`](crate::SealKey::anchored)).
pub trait Anchor: std::fmt::Debug + Send + Sync {
    /// The newest record; `None`: there was none yet.
    ///
    /// # Errors
    /// It cannot be told. The object is not attached.
    fn read(&self) -> io::Result<Option<String>>;

    /// Replaces the record: durable on return.
    ///
    /// # Errors
    /// It may be the new one or the former one.
    fn write(&self, record: &str) -> io::Result<()>;

    /// How long psyncs may go on without a new record. An older state from within that time, and from within the same attachment, is not told from the newest if the process
    /// dies.
    fn interval(&self) -> Duration {
        Duration::from_secs(60)
    }
}

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
        FileAnchor { path: path.as_ref().to_owned(), interval: Duration::from_secs(60) }
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
