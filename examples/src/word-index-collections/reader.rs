//! The index in place, without parsing or loading.

use crate::words::{File, Word, Words};
use anyhow::Result;
use indelible::collections::PString;
use indelible_examples::{Damage, Digest, Totals, Version};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a Words<'a>);

impl<'a> Reader<'a> {
    pub(crate) fn numbered(self, number: u32) -> Result<&'a File<'a>, Damage> {
        self.0.files.get(&number).ok_or_else(|| Damage(format!("there is no file {number}")))
    }

    fn word_numbered(self, number: u32) -> Result<&'a Word<'a>, Damage> {
        self.0.words.get(number as usize).ok_or_else(|| Damage(format!("there is no word {number}")))
    }
}

impl File<'_> {
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}

impl<'a> indelible_examples::Reader<'a> for Reader<'a> {
    type File = u32;
    type Word = (&'a PString<'a>, &'a Word<'a>);

    fn totals(self) -> Result<Totals> {
        let Words { step, postings, tokens, bytes, files, words, .. } = self.0;
        Ok(Totals {
            step: *step,
            files: files.len() as u64,
            words: words.len() as u64,
            postings: *postings,
            tokens: *tokens,
            bytes: *bytes,
        })
    }

    fn files(self) -> Result<Vec<u32>> {
        Ok(self.0.files.keys().copied().collect())
    }

    fn file(self, file: u32) -> Result<indelible_examples::File<'a>> {
        let file = self.numbered(file)?;
        let version = Version { size: file.size, modified: file.modified };
        Ok(indelible_examples::File { path: file.path(), version, tokens: file.tokens, bytes: file.bytes })
    }

    fn find_file(self, path: &Path) -> Result<Option<u32>> {
        Ok(self.0.paths.get(path.as_os_str().as_bytes()).copied())
    }

    fn agrees(self, file: u32, digest: &Digest) -> Result<bool> {
        for (text, count) in &digest.counts {
            let found = self.find_word(text)?.and_then(|(_, word)| Some(word.postings[word.posting(file)?]));
            if found.is_none_or(|posting| u64::from(posting.count) != *count) {
                return Ok(false);
            }
        }
        Ok(self.numbered(file)?.words.len() == digest.counts.len())
    }

    fn word(self, (text, word): Self::Word) -> Result<indelible_examples::Word<'a>> {
        let files = word.postings.len() as u64;
        Ok(indelible_examples::Word { text: text.as_bytes(), files, count: word.count })
    }

    fn find_word(self, text: &str) -> Result<Option<Self::Word>> {
        let found = self.0.numbers.get_key_value(text);
        found.map(|(text, number)| Ok((text, self.word_numbered(*number)?))).transpose()
    }

    fn find_prefix(self, prefix: &str) -> Result<Vec<Self::Word>> {
        let from = self.0.numbers.range::<str>((Bound::Included(prefix), Bound::Unbounded));
        let alike = from.take_while(|(text, _)| text.starts_with(prefix));
        alike.map(|(text, number)| Ok((text, self.word_numbered(*number)?))).collect()
    }

    fn postings(self, (_, word): Self::Word) -> impl Iterator<Item = Result<(u32, u64)>> {
        word.postings.iter().map(|posting| Ok((posting.file, posting.count.into())))
    }
}
