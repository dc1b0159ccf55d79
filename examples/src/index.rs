use crate::text::{Digest, Version};
use anyhow::Result;
use indelible::{Object, ReadObject};
use std::fmt;
use std::hash::Hash;
use std::path::Path;

/// An indexed file; without text it has no words.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    pub path: &'a Path,
    /// Its version when it was read.
    pub version: Version,
    pub tokens: u64,
    pub bytes: u64,
}

/// A word.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// Lower case; UTF-8 unless damaged.
    pub text: &'a [u8],
    pub files: u64,
    pub count: u64,
}

/// Totals of an index.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    pub step: u64,
    pub files: u64,
    pub words: u64,
    pub postings: u64,
    pub tokens: u64,
    pub bytes: u64,
}

/// An index in an object, without parsing or loading.
pub trait Reader<'a>: Copy {
    type File: Copy + Eq + Hash;
    type Word: Copy;

    /// Counts all words and places.
    fn totals(self) -> Result<Totals>;
    fn files(self) -> Result<Vec<Self::File>>;
    fn file(self, file: Self::File) -> Result<File<'a>>;
    fn find_file(self, path: &Path) -> Result<Option<Self::File>>;
    fn agrees(self, file: Self::File, digest: &Digest) -> Result<bool>;
    fn word(self, word: Self::Word) -> Result<Word<'a>>;
    fn find_word(self, text: &str) -> Result<Option<Self::Word>>;
    fn find_prefix(self, prefix: &str) -> Result<Vec<Self::Word>>;
    /// Files that contain a word, and how often.
    fn postings(self, word: Self::Word) -> impl Iterator<Item = Result<(Self::File, u64)>>;
}

/// An index under construction.
///
/// Between two psyncs anything may be half done; a crash leaves the last psync.
pub trait Index: Sized + 'static {
    const NAME: &'static str;
    type Attached;
    type Reader<'a>: Reader<'a>;

    /// The index in `object`, made if that is blank.
    fn open(object: Object, fuse: Fuse) -> Result<Self>;
    fn reader(&self) -> Result<Self::Reader<'_>>;
    /// Adds a finished file; `None` if it has no text.
    fn add(&mut self, path: &Path, version: Version, digest: Option<&Digest>) -> Result<()>;
    fn remove(&mut self, path: &Path) -> Result<()>;
    /// Numbers the next psync's step.
    fn step(&mut self) -> Result<u64>;
    fn psync(&mut self) -> Result<()>;
    fn detach(self) -> Result<()>;

    /// The index in an object attached for reading.
    fn attach(object: ReadObject) -> Result<Self::Attached>;
    fn read(attached: &Self::Attached) -> Result<Self::Reader<'_>>;
    /// Compares all parts of the index.
    fn check(attached: &Self::Attached) -> Result<()>;
    /// Used bytes of the object, and the unreferenced ones among them.
    fn space(attached: &Self::Attached) -> Result<(u64, u64)>;
}

/// Kills the process in the middle of a change.
#[derive(Debug)]
pub struct Fuse {
    changes: u64,
    kill_at: Option<u64>,
}

impl Fuse {
    pub(crate) fn new(kill_at: Option<u64>) -> Fuse {
        Fuse { changes: 0, kill_at }
    }

    /// Call before each change.
    pub fn burn(&mut self) {
        self.changes += 1;
        if self.kill_at == Some(self.changes) {
            kill_self();
        }
    }
}

pub(crate) fn kill_self() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!("SIGKILL cannot be survived");
}

/// The object's bytes contradict the program's writes.
#[derive(Debug)]
pub struct Damage(pub String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index is damaged: {}", self.0)
    }
}

impl std::error::Error for Damage {}

/// An error unless it `holds`.
pub fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(Damage(otherwise())) }
}
