//! The index in place, without parsing or loading.

use crate::arena::{Record, View};
use crate::layout::{self, File, INITIALS, MAGIC, Node, Posting, Root, Table, VERSION, Word};
use anyhow::{Result, bail};
use indelible_examples::{Damage, Digest, Totals, Version, hash};
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
            _ => bail!(Damage("the object does not hold a word index".into())),
        }
    }

    pub(crate) fn view(self) -> View<'a> {
        self.view
    }

    pub(crate) fn root(self) -> &'a Root {
        self.root
    }

    /// Used bytes, garbage included.
    pub(crate) fn used(self) -> u64 {
        self.root.free.addr().saturating_sub(self.view.base().addr()) as u64
    }

    fn find<T: Node + Record + 'a>(
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

    pub(crate) fn word_of(self, text: &[u8], hash: u64) -> Result<Option<(*mut Word, &'a Word)>> {
        self.find(&self.root.words, hash, |word| Ok(self.text(word)? == text))
    }

    pub(crate) fn file_at(self, path: &Path) -> Result<Option<(*mut File, &'a File)>> {
        let path = path.as_os_str().as_bytes();
        self.find(&self.root.files, hash(path), |file| Ok(self.view.slice(file.path, file.path_len)? == path))
    }

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

    pub(crate) fn chain_of(self, word: &Word) -> impl Iterator<Item = Result<(*mut Posting, &'a Posting)>> {
        self.view.chain(word.postings, word.files, |posting| posting.next)
    }

    pub(crate) fn contents(self, file: &File) -> Result<&'a [Posting], Damage> {
        self.view.slice(file.postings, file.distinct)
    }

    pub(crate) fn buckets<T: Node + Record>(self, table: &Table<T>) -> Result<&'a [*mut T], Damage>
    where
        *mut T: Record,
    {
        if !table.bucket_count.is_power_of_two() {
            return Err(Damage(format!("a table has {} buckets", table.bucket_count)));
        }
        self.view.slice(table.buckets, table.bucket_count)
    }

    pub(crate) fn each<T: Node + Record + 'a>(
        self,
        table: &Table<T>,
    ) -> Result<impl Iterator<Item = Result<(*mut T, &'a T)>>> {
        let most = table.len;
        let chain = move |first: &*mut T| self.view.chain(*first, most, T::next);
        Ok(self.buckets(table)?.iter().flat_map(chain))
    }
}

impl<'a> indelible_examples::Reader<'a> for Reader<'a> {
    type File = *mut File;
    type Word = &'a Word;

    fn totals(self) -> Result<Totals> {
        let Root { step, postings, tokens, bytes, words, files, .. } = *self.root;
        Ok(Totals { step, files: files.len, words: words.len, postings, tokens, bytes })
    }

    fn files(self) -> Result<Vec<*mut File>> {
        self.each(&self.root.files)?.map(|found| Ok(found?.0)).collect()
    }

    fn file(self, file: *mut File) -> Result<indelible_examples::File<'a>> {
        let file = self.view.get(file)?;
        let version = Version { size: file.size, modified: file.modified };
        Ok(indelible_examples::File {
            path: self.path(file)?,
            version,
            tokens: file.tokens,
            bytes: file.bytes,
        })
    }

    fn find_file(self, path: &Path) -> Result<Option<*mut File>> {
        Ok(self.file_at(path)?.map(|(at, _)| at))
    }

    fn agrees(self, file: *mut File, digest: &Digest) -> Result<bool> {
        let contents = self.contents(self.view.get(file)?)?;
        for posting in contents {
            let word = self.text(self.view.get(posting.word)?)?;
            let count = std::str::from_utf8(word).ok().and_then(|word| digest.counts.get(word));
            if count != Some(&posting.count) {
                return Ok(false);
            }
        }
        Ok(contents.len() == digest.counts.len())
    }

    fn word(self, word: &'a Word) -> Result<indelible_examples::Word<'a>> {
        Ok(indelible_examples::Word { text: self.text(word)?, files: word.files, count: word.count })
    }

    fn find_word(self, text: &str) -> Result<Option<&'a Word>> {
        Ok(self.word_of(text.as_bytes(), hash(text.as_bytes()))?.map(|(_, word)| word))
    }

    fn find_prefix(self, prefix: &str) -> Result<Vec<&'a Word>> {
        let mut found = Vec::new();
        for list in layout::initials(prefix.as_bytes()) {
            for word in self.alike(list)? {
                let (_, word) = word?;
                if self.text(word)?.starts_with(prefix.as_bytes()) {
                    found.push(word);
                }
            }
        }
        Ok(found)
    }

    fn postings(self, word: &'a Word) -> impl Iterator<Item = Result<(*mut File, u64)>> {
        self.chain_of(word).map(|found| found.map(|(_, posting)| (posting.file, posting.count)))
    }
}
