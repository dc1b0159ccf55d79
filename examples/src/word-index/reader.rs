//! The index as it lies there: nothing is parsed, nothing is loaded.

use crate::arena::{Damage, Record, View};
use crate::index::Version;
use crate::layout::{self, File, INITIALS, MAGIC, Node, Posting, Root, Table, VERSION, Word};
use crate::text::hash;
use anyhow::{Result, bail};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    view: View<'a>,
    root: &'a Root,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(view: View<'a>) -> Result<Self> {
        let root: &Root = view.get(view.base().cast())?;
        match (root.magic, root.version) {
            (MAGIC, VERSION) => Ok(Reader { view, root }),
            (MAGIC, other) => bail!(
                "the index has layout {other} and this program knows {VERSION}: build it anew (--fresh)"
            ),
            ([0, 0, 0, 0, 0, 0, 0, 0], _) => {
                bail!("the index is empty: `word-index build` fills it")
            }
            _ => bail!(Damage("the object does not hold a word index".into())),
        }
    }

    pub(crate) fn view(self) -> View<'a> {
        self.view
    }

    pub(crate) fn root(self) -> &'a Root {
        self.root
    }

    /// Bytes in use, garbage included.
    pub(crate) fn used(self) -> u64 {
        self.root.free.addr().saturating_sub(self.view.base().addr()) as u64
    }

    fn find<T: Node + 'a>(
        self,
        table: &Table<T>,
        hash: u64,
        same: impl Fn(&T) -> Result<bool>,
    ) -> Result<Option<(*mut T, &'a T)>> {
        let first = *self.view.get(table.bucket(hash))?;
        for found in self.view.chain(first, table.len, T::next) {
            let (at, node) = found?;
            if node.hash() == hash && same(node)? {
                return Ok(Some((at, node)));
            }
        }
        Ok(None)
    }

    pub(crate) fn find_word(self, text: &[u8], hash: u64) -> Result<Option<(*mut Word, &'a Word)>> {
        self.find(&self.root.words, hash, |word| Ok(self.text(word)? == text))
    }

    pub(crate) fn find_file(self, path: &Path) -> Result<Option<(*mut File, &'a File)>> {
        let path = path.as_os_str().as_bytes();
        self.find(&self.root.files, hash(path), |file| Ok(self.view.slice(file.path, file.path_len)? == path))
    }

    /// Words that begin with `prefix`.
    pub(crate) fn find_prefix(self, prefix: &[u8]) -> Result<Vec<&'a Word>> {
        let mut found = Vec::new();
        for list in layout::initials(prefix) {
            for word in self.alike(list)? {
                let (_, word) = word?;
                if self.text(word)?.starts_with(prefix) {
                    found.push(word);
                }
            }
        }
        Ok(found)
    }

    /// The words on one list of [`initials`](layout::initials).
    pub(crate) fn alike(self, list: usize) -> Result<impl Iterator<Item = Result<(*mut Word, &'a Word)>>> {
        let lists = self.view.slice(self.root.initials, INITIALS as u64)?;
        Ok(self.view.chain(lists[list], self.root.words.len, |word| word.alike))
    }

    pub(crate) fn text(self, word: &Word) -> Result<&'a [u8], Damage> {
        self.view.slice(word.text, word.len)
    }

    pub(crate) fn path(self, file: &File) -> Result<&'a Path, Damage> {
        Ok(Path::new(OsStr::from_bytes(self.view.slice(file.path, file.path_len)?)))
    }

    /// Where a word occurs.
    pub(crate) fn postings(self, word: &Word) -> impl Iterator<Item = Result<(*mut Posting, &'a Posting)>> {
        self.view.chain(word.postings, word.files, |posting| posting.next)
    }

    /// What occurs in a file.
    pub(crate) fn contents(self, file: &File) -> Result<&'a [Posting], Damage> {
        self.view.slice(file.postings, file.distinct)
    }

    /// The chains of a table.
    pub(crate) fn buckets<T: Node>(self, table: &Table<T>) -> Result<&'a [*mut T], Damage>
    where
        *mut T: Record,
    {
        if !table.bucket_count.is_power_of_two() {
            return Err(Damage(format!("a table has {} buckets", table.bucket_count)));
        }
        self.view.slice(table.buckets, table.bucket_count)
    }

    /// Everything in a table.
    pub(crate) fn each<T: Node + 'a>(
        self,
        table: &Table<T>,
    ) -> Result<impl Iterator<Item = Result<(*mut T, &'a T)>>> {
        let most = table.len;
        let chain = move |first: &*mut T| self.view.chain(*first, most, T::next);
        Ok(self.buckets(table)?.iter().flat_map(chain))
    }
}

impl File {
    pub(crate) fn version(&self) -> Version {
        Version { size: self.size, modified: self.modified }
    }
}
