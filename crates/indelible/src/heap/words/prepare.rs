//! Changes of the heap's own data, made on copies and stored word by word.

use super::{WordHeap, Words};
use crate::error::Cause;
use crate::heap::copies::Copies;
use crate::heap::directory::Directory;
use crate::heap::error::{HeapError, Result};
use crate::heap::layout::{FAR, FAR_PRIVATE, Header, LONG_ROOTS, MAGIC, MAX_PAGES, PAGE, VERSION};
use crate::heap::window::Window;
use indelible_store::Mutant;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

impl WordHeap {
    pub(crate) fn open(&self, words: &mut impl Words) -> Result<(), Cause> {
        self.prepare(words, |window| match Directory::open(&window) {
            Ok(directory) => match directory.extend() {
                Ok(()) | Err(HeapError::Full { .. }) => Ok(()),
                Err(error) => Err(error),
            },
            Err(HeapError::NotAHeap) => Directory::format(&window)?.reserve(),
            Err(error) => Err(error),
        })
    }

    pub(crate) fn make(&self, words: &mut impl Words) -> Result<(), Cause> {
        if self.is_made(words)? { Ok(()) } else { self.open(words) }
    }

    pub(crate) fn expect_made(&self, words: &mut impl Words) -> Result<(), Cause> {
        if self.is_made(words)? {
            return Ok(());
        }
        if Mutant::HeapMadeUnasked.is_on() {
            return self.open(words);
        }
        match self.prepare(words, |window| Directory::open(&window).map(drop)) {
            Err(Cause::Heap(HeapError::NotAHeap)) => Err(HeapError::NotMade.into()),
            opened => opened,
        }
    }

    fn is_made(&self, words: &mut impl Words) -> Result<bool, Cause> {
        let magic = words.load(offset_of!(Header, magic) as u64)?;
        let version = words.load(offset_of!(Header, version) as u64)?;
        let features = u64::from(LONG_ROOTS | FAR | FAR_PRIVATE) << 32;
        Ok(magic == MAGIC && version & !features == u64::from(VERSION))
    }

    pub(super) fn extend(&self, words: &mut impl Words) -> Result<bool, Cause> {
        let pages = words.load(offset_of!(Header, pages) as u64)?;
        if pages >= (self.len() as u64 / PAGE).min(MAX_PAGES) {
            return Ok(false);
        }
        self.open(words)?;
        Ok(true)
    }

    pub(super) fn prepare<R>(
        &self,
        words: &mut impl Words,
        change: impl Fn(Window) -> Result<R>,
    ) -> Result<R, Cause> {
        let base = NonNull::new(std::ptr::without_provenance_mut(self.base)).unwrap_or(NonNull::dangling());
        let mut pages = BTreeMap::new();
        loop {
            let copies = Arc::new(Copies::of(&pages));
            let result = change(Window::of_copies(base, self.len(), copies.clone()));
            if let Some(absent) = copies.absent() {
                copy(words, &mut pages, absent)?;
                continue;
            }
            let done = result?;
            copies.changes().try_for_each(|(offset, word)| words.store(offset, word))?;
            return Ok(done);
        }
    }
}

fn copy(
    words: &mut impl Words,
    pages: &mut BTreeMap<u64, Vec<u64>>,
    absent: Range<u64>,
) -> Result<(), Cause> {
    let end = |first: u64, run: &Vec<u64>| first + run.len() as u64 * 8 / PAGE;
    let overlaps = |first: u64, run: &Vec<u64>| first < absent.end && end(first, run) > absent.start;
    let old: Vec<u64> =
        pages.iter().filter(|(first, run)| overlaps(**first, run)).map(|(first, _)| *first).collect();
    let start = old.iter().copied().fold(absent.start, u64::min);
    let end = old.iter().map(|first| end(*first, &pages[first])).fold(absent.end, u64::max);
    old.iter().for_each(|first| drop(pages.remove(first)));
    let run = (start * PAGE..end * PAGE).step_by(8).map(|offset| words.load(offset));
    pages.insert(start, run.collect::<Result<_, Cause>>()?);
    Ok(())
}
