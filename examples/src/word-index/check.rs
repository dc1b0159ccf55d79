//! Whether the index is whole.
//!
//! Compares all structures:
//! 1. pointers lead to structures within the used bytes, which do not overlap;
//! 2. they and the known garbage are all used bytes;
//! 3. words and files are once in the bucket of their hash; words are on the list of their
//!    initials;
//! 4. postings are on their word's list and among their file's, and nowhere else;
//! 5. all counts and totals are the right sums.

use crate::arena::Record;
use crate::layout::{File, INITIALS, Node, Root, Table, Word, initials};
use crate::reader::Reader;
use anyhow::Result;
use indelible_examples::{Damage, ensure, hash};
use std::collections::{HashMap, HashSet};

pub(crate) fn check(reader: Reader<'_>) -> Result<()> {
    let root = reader.root();
    let mut space = Space::default();
    space.take(reader.view().base(), size_of::<Root>() as u64);
    space.take(root.initials.cast(), (INITIALS * 8) as u64);
    let files = files(reader, &mut space)?;
    words(reader, &mut space, &files)?;
    space.check(reader.view().base().addr(), reader.used(), root.garbage)?;
    Ok(())
}

type Files = HashMap<usize, HashSet<usize>>;

fn files(reader: Reader<'_>, space: &mut Space) -> Result<Files> {
    let root = reader.root();
    let mut files = Files::new();
    let mut paths = HashSet::new();
    let (mut postings, mut tokens, mut bytes) = (0_u64, 0_u64, 0_u64);
    table(reader, &root.files, space, |at, file: &File, space| {
        let path = reader.path(file)?;
        ensure(paths.insert(path), || format!("{} is there twice", path.display()))?;
        ensure(file.hash == hash(path.as_os_str().as_encoded_bytes()), || {
            format!("the hash of {} is wrong", path.display())
        })?;
        space.take(file.path, file.path_len);
        let contents = reader.contents(file)?;
        space.take(file.postings.cast(), size_of_val(contents) as u64);
        ensure(contents.iter().all(|posting| posting.file == at), || {
            format!("a posting of {} is another file's", path.display())
        })?;
        let count = contents.iter().fold(0, |sum: u64, posting| sum.wrapping_add(posting.count));
        ensure(file.tokens == count, || {
            format!("{} has {} words and postings of {count}", path.display(), file.tokens)
        })?;
        postings = postings.wrapping_add(file.distinct);
        tokens = tokens.wrapping_add(file.tokens);
        bytes = bytes.wrapping_add(file.bytes);
        files.insert(at.addr(), contents.iter().map(|posting| std::ptr::from_ref(posting).addr()).collect());
        Ok(())
    })?;
    let found = (postings, tokens, bytes);
    let said = (root.postings, root.tokens, root.bytes);
    ensure(found == said, || format!("postings, words and bytes are {found:?} and the root says {said:?}"))?;
    Ok(files)
}

fn words(reader: Reader<'_>, space: &mut Space, files: &Files) -> Result<()> {
    let mut unclaimed = files.clone();
    let mut listed = HashSet::new();
    for list in 0..INITIALS {
        for word in reader.alike(list)? {
            let (at, word) = word?;
            let text = reader.text(word)?;
            ensure(initials(text).start == list, || format!("{text:?} is on the wrong list"))?;
            ensure(listed.insert(at), || format!("{text:?} is on its list twice"))?;
        }
    }
    let mut texts = HashSet::new();
    table(reader, &reader.root().words, space, |at, word: &Word, space| {
        let text = reader.text(word)?;
        space.take(word.text, word.len);
        let name = || String::from_utf8_lossy(text);
        ensure(texts.insert(text), || format!("{:?} is there twice", name()))?;
        ensure(word.hash == hash(text), || format!("the hash of {:?} is wrong", name()))?;
        ensure(listed.remove(&at), || format!("{:?} is not on the list of its initials", name()))?;
        let (mut postings, mut count) = (0, 0_u64);
        for posting in reader.chain_of(word) {
            let (place, posting) = posting?;
            ensure(posting.word == at, || format!("a posting of {:?} is another word's", name()))?;
            let claimed =
                unclaimed.get_mut(&posting.file.addr()).is_some_and(|left| left.remove(&place.addr()));
            ensure(claimed, || format!("a posting of {:?} is no file's", name()))?;
            postings += 1;
            count = count.wrapping_add(posting.count);
        }
        ensure((word.files, word.count) == (postings, count), || {
            format!(
                "{:?} says {} files, {} times, and has {postings}, {count}",
                name(),
                word.files,
                word.count
            )
        })?;
        Ok(())
    })?;
    ensure(listed.is_empty(), || format!("{} words are on a list and in no bucket", listed.len()))?;
    ensure(unclaimed.values().all(HashSet::is_empty), || "a file's posting is on no word's list".into())?;
    Ok(())
}

fn table<'a, T: Node + Record + 'a>(
    reader: Reader<'a>,
    table: &Table<T>,
    space: &mut Space,
    mut node: impl FnMut(*mut T, &'a T, &mut Space) -> Result<()>,
) -> Result<()> {
    let buckets = reader.buckets(table)?;
    space.take(table.buckets.cast(), size_of_val(buckets) as u64);
    let mut len = 0;
    for (index, first) in buckets.iter().enumerate() {
        for found in reader.view().chain(*first, table.len, T::next) {
            let (at, value) = found?;
            let right = table.bucket(value.hash()) == table.buckets.wrapping_add(index);
            ensure(right, || format!("{at:p} is in the wrong bucket"))?;
            space.take(at.cast(), size_of::<T>() as u64);
            node(at, value, space)?;
            len += 1;
        }
    }
    Ok(ensure(len == table.len, || format!("a table of {} has {len}", table.len))?)
}

#[derive(Default)]
struct Space(Vec<(usize, usize)>);

impl Space {
    fn take(&mut self, at: *const u8, len: u64) {
        if len > 0 {
            self.0.push((at.addr(), at.addr().saturating_add(len.next_multiple_of(8) as usize)));
        }
    }

    fn check(mut self, base: usize, used: u64, garbage: u64) -> Result<(), Damage> {
        self.0.sort_unstable();
        let (mut end, mut sum) = (base, 0);
        for (from, to) in &self.0 {
            ensure(*from >= end, || format!("two structures overlap at {from:#x}"))?;
            sum += (to - from) as u64;
            end = *to;
        }
        ensure((end - base) as u64 <= used, || "a structure lies beyond the space in use".into())?;
        ensure(garbage.checked_add(sum) == Some(used), || {
            format!("{sum} bytes are structures, {garbage} garbage, and {used} are in use")
        })
    }
}
