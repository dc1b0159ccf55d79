//! A shared backing as words.
//!
//! Invariants: those of the module (1).

#![allow(unsafe_code)]

use super::place::MemoryLocation;
use crate::backing::{Backing, BackingError, Identity};
use crate::mapping::{Mapping, MappingError};
use crate::sys::PAGE;
use crate::sys::mmap::Protection;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const WORD: usize = 8;
/// A word that says that the object's bytes are complete, and a count of marked lines.
pub(super) const HEAD: usize = PAGE;
const FILLED: u64 = u64::from_le_bytes(*b"filled!\0");
pub(super) const MARKED: usize = 1;

#[derive(Debug)]
pub(crate) struct Words(Mapping);

impl Words {
    pub(super) fn of(backing: &Backing) -> Result<Words, BackingError> {
        Ok(Words(backing.map(None)?))
    }

    pub(crate) fn zeros(len: usize) -> Result<Words, MappingError> {
        Ok(Words(Mapping::anonymous(None, len, Protection::ReadWrite)?))
    }

    fn part(backing: &Backing, from: usize, len: usize, room: usize) -> Result<Words, BackingError> {
        Ok(Words(backing.map_part(None, from, (len, room), Protection::ReadWrite)?))
    }

    #[inline]
    pub(crate) fn all(&self) -> &[AtomicU64] {
        let words = self.0.base().cast::<AtomicU64>();
        // SAFETY: mapped, for storing, as long as `self` is; page-aligned, whole words, and
        // accessed as atomics alone (1).
        unsafe { std::slice::from_raw_parts(words.as_ptr(), self.0.len() / WORD) }
    }

    pub(crate) fn base(&self) -> *const u8 {
        self.0.base().as_ptr().cast_const()
    }
}

#[derive(Debug)]
pub(crate) struct Area {
    words: Words,
    head: Words,
    backing: Backing,
    len: usize,
}

impl Area {
    pub(super) fn create(
        place: &MemoryLocation,
        identity: &Identity,
        (len, room): (usize, usize),
    ) -> Result<Area, BackingError> {
        let backing = Backing::create(place.folders(), identity, HEAD + len)?;
        let (backing, (words, head)) = backing.used_by(|backing| Area::mapped(backing, len, room))?;
        Ok(Area { words, head, backing, len })
    }

    pub(super) fn find(
        place: &MemoryLocation,
        identity: &Identity,
        len: usize,
    ) -> Result<Option<Area>, BackingError> {
        let found = Backing::find_longer(place.folders(), identity, HEAD + len)?;
        found.map(|backing| Area::of(backing, len, len)).transpose()
    }

    fn of(backing: Backing, len: usize, room: usize) -> Result<Area, BackingError> {
        let (words, head) = Area::mapped(&backing, len, room)?;
        Ok(Area { words, head, backing, len })
    }

    fn mapped(backing: &Backing, len: usize, room: usize) -> Result<(Words, Words), BackingError> {
        Ok((Words::part(backing, HEAD, len, room)?, Words::part(backing, 0, HEAD, HEAD)?))
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn room(&self) -> usize {
        self.words.0.room()
    }

    /// The memory is still found for the present length.
    pub(crate) fn reserve(&mut self, len: usize) -> Result<(), BackingError> {
        self.backing.lengthen(HEAD + len)
    }

    /// `shown`: also at the object's own address.
    pub(crate) fn grow(&mut self, shown: Option<&mut Mapping>, len: usize) -> Result<(), BackingError> {
        let offset = Some(Backing::offset(HEAD));
        if let Some(shown) = shown {
            shown.grow(len, offset)?;
        }
        self.words.0.grow(len, offset)?;
        self.len = len;
        Ok(())
    }

    pub(crate) fn put(&self, offset: usize, bytes: &[u8]) {
        let words = self.words.all()[offset / WORD..].iter().zip(bytes.as_chunks::<WORD>().0);
        words.for_each(|(word, bytes)| word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed));
    }

    pub(crate) fn get(&self, offset: usize, bytes: &mut [u8]) {
        let words = self.words.all()[offset / WORD..].iter().zip(bytes.as_chunks_mut::<WORD>().0);
        words.for_each(|(word, bytes)| *bytes = word.load(Ordering::Relaxed).to_le_bytes());
    }

    /// Before that there are no commits.
    pub(crate) fn fill(&self) {
        self.head.all()[0].store(FILLED, Ordering::Release);
    }

    pub(super) fn is_filled(&self) -> bool {
        self.head.all()[0].load(Ordering::Acquire) == FILLED
    }

    pub(crate) fn pending(&self) -> Result<Counter, BackingError> {
        Ok(Counter { words: Words::part(&self.backing, 0, HEAD, HEAD)? })
    }

    pub(crate) fn show(&self, addr: usize, protection: Protection) -> Result<Mapping, BackingError> {
        self.backing.map_part(Some(addr), HEAD, (self.len, 0), protection)
    }

    pub(super) fn again(&self) -> Result<Words, BackingError> {
        Words::part(&self.backing, HEAD, self.len, self.len)
    }

    pub(crate) fn remove(self) -> Result<(), BackingError> {
        drop((self.words, self.head));
        self.backing.remove()
    }
}

#[derive(Debug)]
pub(crate) struct Counter {
    words: Words,
}

impl Counter {
    #[inline]
    pub(crate) fn get(&self) -> &AtomicU64 {
        &self.words.all()[MARKED]
    }
}
