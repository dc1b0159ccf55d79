//! Whether the index is whole.
//!
//! The heap checks its blocks, collections their pointers. This module checks their agreement:
//! 1. every path leads to its file, and every file has a path;
//! 2. every word number is one word's;
//! 3. postings and files' words correspond;
//! 4. all counts and totals are the right sums.

use crate::reader::Reader;
use anyhow::Result;
use indelible_examples::{Damage, ensure};
use std::collections::HashSet;

pub(crate) fn check(reader: Reader<'_>) -> Result<()> {
    let index = reader.0;
    let (mut postings, mut tokens, mut bytes) = (0, 0, 0);
    let mut pairs = HashSet::new();
    for (number, file) in &index.files {
        let name = file.path().display();
        let known = index.paths.get(&file.path[..]) == Some(number) && *number < index.next;
        ensure(known, || format!("{name} is not file {number}"))?;
        let mut count = 0;
        for word in &file.words {
            ensure(pairs.insert((*word, *number)), || format!("{name} has word {word} twice"))?;
            let word = index.words.get(*word as usize);
            let posting = word.and_then(|word| word.postings.get(word.posting(*number)?));
            let posting = posting.ok_or_else(|| Damage(format!("a word of {name} does not know it")))?;
            count += u64::from(posting.count);
        }
        let said = file.tokens;
        ensure(count == said, || format!("{name} has {said} words and postings of {count}"))?;
        postings += file.words.len();
        tokens += file.tokens;
        bytes += file.bytes;
    }
    ensure(index.paths.len() == index.files.len(), || "a path leads nowhere".into())?;
    let found = (postings as u64, tokens, bytes);
    let said = (index.postings, index.tokens, index.bytes);
    ensure(found == said, || format!("postings, words and bytes are {found:?} and the root says {said:?}"))?;
    words(reader, postings)
}

fn words(reader: Reader<'_>, postings: usize) -> Result<()> {
    let index = reader.0;
    let mut numbers = HashSet::new();
    let mut all = 0;
    for (text, number) in &index.numbers {
        let name = text.as_str();
        ensure(numbers.insert(number), || format!("{name:?} is another word's number"))?;
        let word = index.words.get(*number as usize);
        let word = word.ok_or_else(|| Damage(format!("{name:?} has number {number}, and there is none")))?;
        let sorted = word.postings.is_sorted_by(|a, b| a.file < b.file);
        ensure(sorted, || format!("the postings of {name:?} are not in order"))?;
        let count: u64 = word.postings.iter().map(|posting| u64::from(posting.count)).sum();
        ensure(count == word.count, || format!("{name:?} says {} times, and has {count}", word.count))?;
        all += word.postings.len();
    }
    ensure(numbers.len() == index.words.len(), || "a word has no text".into())?;
    Ok(ensure(all == postings, || format!("{all} postings are words' and {postings} files'"))?)
}
