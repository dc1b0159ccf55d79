//! Interface of a word index, with either implementation.

use crate::text::{Digest, Version};
use anyhow::Result;
use indelible::{Object, ReadObject};
use std::fmt;
use std::hash::Hash;
use std::path::Path;

/// A file that is done. Those that hold no text have no words.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Without symbolic links.
    pub path: &'a Path,
    /// As it was read.
    pub version: Version,
    /// Words, counted as often as they occur.
    pub tokens: u64,
    /// Bytes of text, unpacked.
    pub bytes: u64,
}

/// A word.
#[derive(Clone, Copy, Debug)]
pub struct Word<'a> {
    /// In lower case, UTF-8 if the object is not damaged.
    pub text: &'a [u8],
    /// Files it occurs in.
    pub files: u64,
    /// Occurrences in all files.
    pub count: u64,
}

/// All of an index, in numbers.
#[derive(Clone, Copy, Debug)]
pub struct Totals {
    /// Psyncs so far: which step of the build this is.
    pub step: u64,
    /// Files.
    pub files: u64,
    /// Different words.
    pub words: u64,
    /// Pairs of a word and a file it occurs in.
    pub postings: u64,
    /// Words, counted as often as they occur.
    pub tokens: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// The index as it lies in an object: nothing is parsed, nothing is loaded.
pub trait Reader<'a>: Copy {
    /// How a file is known within the index.
    type File: Copy + Eq + Hash;
    /// How a word is known within the index.
    type Word: Copy;

    /// The sums of all.
    fn totals(self) -> Result<Totals>;
    /// All files.
    fn files(self) -> Result<Vec<Self::File>>;
    /// Name and counts of a file.
    fn file(self, file: Self::File) -> Result<File<'a>>;
    /// The file at `path`.
    fn find_file(self, path: &Path) -> Result<Option<Self::File>>;
    /// Whether the words of a file are those of `digest`, each as often.
    fn agrees(self, file: Self::File, digest: &Digest) -> Result<bool>;
    /// Text and counts of a word.
    fn word(self, word: Self::Word) -> Result<Word<'a>>;
    /// The word `text`.
    fn find_word(self, text: &str) -> Result<Option<Self::Word>>;
    /// Words that begin with `prefix`.
    fn find_prefix(self, prefix: &str) -> Result<Vec<Self::Word>>;
    /// Files in which a word occurs, and how often.
    fn postings(self, word: Self::Word) -> impl Iterator<Item = Result<(Self::File, u64)>>;
}

/// An index that is being built.
///
/// Between two psyncs anything may be half done: what a crash leaves is the last psync, whole.
pub trait Index: Sized + 'static {
    /// Name of the program, and of its pool.
    const NAME: &'static str;
    /// An object attached for reading.
    type Attached;
    /// The index in it, or in one that is being built.
    type Reader<'a>: Reader<'a>;

    /// The index in `object`, made if the object is blank.
    fn open(object: Object, fuse: Fuse) -> Result<Self>;
    /// The index as it is now.
    fn reader(&self) -> Result<Self::Reader<'_>>;
    /// Adds a file that is done; `None` if it holds no text.
    fn add(&mut self, path: &Path, version: Version, digest: Option<&Digest>) -> Result<()>;
    /// Forgets the file at `path`, if it is there. Words stay, even those that occur nowhere else.
    fn remove(&mut self, path: &Path) -> Result<()>;
    /// Numbers the step that the next psync makes.
    fn step(&mut self) -> Result<u64>;
    /// Makes everything so far durable, as one step.
    fn psync(&mut self) -> Result<()>;
    /// Ends the attachment.
    fn detach(self) -> Result<()>;

    /// The index in an object attached for reading.
    fn attach(object: ReadObject) -> Result<Self::Attached>;
    /// As [`reader`](Index::reader).
    fn read(attached: &Self::Attached) -> Result<Self::Reader<'_>>;
    /// Holds everything that can be told from the object alone against everything else.
    fn check(attached: &Self::Attached) -> Result<()>;
    /// Bytes of the object in use, and how many of these nothing refers to.
    fn space(attached: &Self::Attached) -> Result<(u64, u64)>;
}

/// Ends the process, as `kill -9` does, in the middle of a change.
#[derive(Debug)]
pub struct Fuse {
    changes: u64,
    kill_at: Option<u64>,
}

impl Fuse {
    pub(crate) fn new(kill_at: Option<u64>) -> Fuse {
        Fuse { changes: 0, kill_at }
    }

    /// Before each change.
    pub fn burn(&mut self) {
        self.changes += 1;
        if self.kill_at == Some(self.changes) {
            kill_self();
        }
    }
}

/// Ends this process as `kill -9` does: nothing of it runs any more.
pub(crate) fn kill_self() -> ! {
    use rustix::process::{Signal, getpid, kill_process};
    let _ = kill_process(getpid(), Signal::KILL);
    unreachable!("SIGKILL cannot be survived");
}

/// The bytes of the object contradict what this program wrote.
#[derive(Debug)]
pub struct Damage(pub String);

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the index is damaged: {}", self.0)
    }
}

impl std::error::Error for Damage {}

/// An error unless it `holds`.
///
/// # Errors
/// Damage: what `otherwise` says.
pub fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Damage> {
    if holds { Ok(()) } else { Err(Damage(otherwise())) }
}
