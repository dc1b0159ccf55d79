//! Databases to and from plain files of SQLite.

use crate::header::{Header, START};
use indelible::{AttachOptions, CreateOptions, ErrorKind, Pool, Tracking};
use indelible_files::{Partial, expect_free};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind::NotFound, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes copied at a time, and from psync to psync.
const PIECE: usize = 1 << 20;
const BATCH: usize = 64 << 20;
const UNFINISHED: &str = "~unfinished import";
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Bytes of SQLite's header; two of them say that the database needs a WAL file.
const HEADER: usize = 100;
const VERSIONS: std::ops::Range<usize> = 18..20;

/// A database that could not be copied. Nothing was left of it.
#[derive(Debug)]
pub enum CopyError {
    /// The pool's error.
    Pool(indelible::Error),
    /// An error of a plain file.
    File(PathBuf, io::Error),
    /// The object exists.
    Exists(String),
    /// It is no database, or not all of one: why, and the remedy.
    Refused(String, &'static str),
}

impl CopyError {
    /// The remedy.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            CopyError::Pool(error) => error.remedy(),
            CopyError::File(..) => "check the path, its rights, and the free space there",
            CopyError::Exists(_) => "choose another name, or destroy the object first",
            CopyError::Refused(_, remedy) => remedy,
        }
    }
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::Pool(error) => error.fmt(f),
            CopyError::File(path, error) => write!(f, "{}: {error}", path.display()),
            CopyError::Exists(name) => write!(f, "object {name:?} exists"),
            CopyError::Refused(text, _) => f.write_str(text),
        }
    }
}

impl std::error::Error for CopyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CopyError::Pool(error) => Some(error),
            CopyError::File(_, error) => Some(error),
            CopyError::Exists(_) | CopyError::Refused(..) => None,
        }
    }
}

impl From<indelible::Error> for CopyError {
    fn from(error: indelible::Error) -> CopyError {
        CopyError::Pool(error)
    }
}

/// Writes an object's database into a new file, as its last commit left it, beside writers. The
/// file has its name once it is whole and durable; until then it is beside, as
/// `NAME.PID.partial`. Returns its bytes.
///
/// # Errors
/// The file exists, or cannot be written; the object is no database; `NoRoom`: a writer has it, and
/// the pool has no room for a snapshot as large.
pub fn export(pool: &Pool, object: &str, to: &Path) -> Result<u64, CopyError> {
    let failed = |error| CopyError::File(to.to_owned(), error);
    let snapshot = match pool.attach_snapshot_anywhere(object, b"") {
        // The object itself, if no writer has it.
        Err(error) if error.kind() == ErrorKind::NoRoom => pool.attach_read(object).map_err(|_| error)?,
        snapshot => snapshot?,
    };
    let header = Header::read(&snapshot)
        .map_err(|failure| CopyError::Refused(failure.text, "name an object that holds a database"))?;
    let bytes = &snapshot.as_slice()[START..START + header.length as usize];
    let partial = expect_free(to).and_then(|()| Partial::file(to, 0o666)).map_err(failed)?;
    let written = bytes.chunks(PIECE).try_for_each(|piece| partial.opened().write_all(piece));
    written.and_then(|()| partial.publish(to)).map_err(failed)?;
    Ok(header.length)
}

/// Makes an object of a plain file's database, which is not to be written meanwhile. The object is
/// there as a whole, or not. Returns its bytes.
///
/// # Errors
/// The object exists; the file is no database, or has a journal or a WAL file, which SQLite must
/// bring into it first; the pool is full.
pub fn import(from: &Path, pool: &Pool, object: &str) -> Result<u64, CopyError> {
    let failed = |error| CopyError::File(from.to_owned(), error);
    let mut file = File::open(from).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut first = vec![0; HEADER.min(length as usize)];
    file.read_exact(&mut first).map_err(failed)?;
    if length > 0 && first.get(..MAGIC.len()) != Some(&MAGIC[..]) {
        let text = format!("{} is no database of SQLite", from.display());
        return Err(CopyError::Refused(text, "name the file of a database that is not encrypted"));
    }
    for end in ["-wal", "-journal"] {
        let mut beside = from.as_os_str().to_owned();
        beside.push(end);
        // A journal that begins with zeros is over: `journal_mode=PERSIST` keeps it.
        let mut first = Vec::new();
        let begun = File::open(&beside).and_then(|file| file.take(1).read_to_end(&mut first));
        let over = end == "-journal" && first == [0];
        if !over && begun.map_or_else(|error| error.kind() != NotFound, |read| read > 0) {
            let text = format!("{} has changes that the database lacks", Path::new(&beside).display());
            return Err(CopyError::Refused(text, "open the database with SQLite and close it, then again"));
        }
    }
    if pool.stat(object).is_ok() {
        return Err(CopyError::Exists(object.into()));
    }
    if let Some(versions) = first.get_mut(VERSIONS) {
        versions.fill(1);
    }
    let unfinished = format!("{object}{UNFINISHED}");
    match pool.destroy(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let made = fill(pool, &unfinished, length, first.as_slice().chain(file), from)
        .and_then(|()| Ok(pool.rename(&unfinished, object, b"")?));
    if made.is_err() {
        // The failure that is reported is the first.
        let _ = pool.destroy(&unfinished);
    }
    made.map(|()| length)
}

fn fill(pool: &Pool, name: &str, length: u64, mut bytes: impl Read, from: &Path) -> Result<(), CopyError> {
    let options = CreateOptions::new(START as u64 + length).position_independent(true);
    pool.create_with(name, &options)?;
    let mut object = pool.attach_with(name, &AttachOptions::new().tracking(Tracking::Explicit))?;
    let (mut at, end, mut psynced) = (START, START + length as usize, START);
    while at < end {
        let next = end.min(at + PIECE);
        object.prefault(at..next)?;
        let read = bytes.read_exact(object.range_mut(at..next));
        read.map_err(|error| CopyError::File(from.to_owned(), error))?;
        at = next;
        if at - psynced >= BATCH {
            object.psync()?;
            psynced = at;
        }
    }
    *object.root_mut::<Header>()? = Header::new(length);
    object.psync()?;
    Ok(object.detach()?)
}
