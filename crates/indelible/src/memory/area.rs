//! A shared backing as words.
//!
//! Invariants: those of the module (1).

#![allow(unsafe_code)]

use super::place::Place;
use crate::backing::{Backing, BackingError, Identity};
use crate::mapping::Mapping;
use crate::sys::PAGE;
use crate::sys::mmap::Protection;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a word.
pub(super) const WORD: usize = 8;
/// The word behind the object's bytes has this once they are all there. The next one counts lines that are marked.
const FILLED: u64 = u64::from_le_bytes(*b"filled!\0");

/// Memory that is accessed word by word.
#[derive(Debug)]
pub(crate) struct Words(Mapping);

impl Words {
    pub(super) fn of(backing: &Backing) -> Result<Words, BackingError> {
        Ok(Words(backing.map(None)?))
    }

    /// All of it.
    #[inline]
    pub(crate) fn all(&self) -> &[AtomicU64] {
        let words = self.0.base().cast::<AtomicU64>();
        // SAFETY: mapped, for storing, as long as `self` is; page-aligned, whole words, and accessed as atomics alone (1).
        unsafe { std::slice::from_raw_parts(words.as_ptr(), self.0.len() / WORD) }
    }

    /// Address of the first.
    pub(crate) fn base(&self) -> *const u8 {
        self.0.base().as_ptr().cast_const()
    }
}

/// The memory of an object, or the head of a group: a backing, and where it is mapped.
#[derive(Debug)]
pub(crate) struct Area {
    words: Words,
    backing: Backing,
    /// Bytes of the object.
    len: usize,
}

impl Area {
    /// Makes the memory of an object of `len` bytes, whole pages: zeros.
    pub(super) fn create(place: &Place, identity: &Identity, len: usize) -> Result<Area, BackingError> {
        let backing = Backing::create(place.folders(), identity, len + PAGE)?;
        Ok(Area { words: Words::of(&backing)?, backing, len })
    }

    /// That which a dead process left, if there is one.
    pub(super) fn find(place: &Place, identity: &Identity, len: usize) -> Result<Option<Area>, BackingError> {
        let Some(backing) = Backing::find(place.folders(), identity, len + PAGE)? else { return Ok(None) };
        Ok(Some(Area { words: Words::of(&backing)?, backing, len }))
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Bytes of the object.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Stores bytes of the object, whole words, from `offset` on.
    pub(crate) fn put(&self, offset: usize, bytes: &[u8]) {
        let words = self.words.all()[offset / WORD..].iter().zip(bytes.as_chunks::<WORD>().0);
        words.for_each(|(word, bytes)| word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed));
    }

    /// Loads bytes of the object, whole words, from `offset` on.
    pub(crate) fn get(&self, offset: usize, bytes: &mut [u8]) {
        let words = self.words.all()[offset / WORD..].iter().zip(bytes.as_chunks_mut::<WORD>().0);
        words.for_each(|(word, bytes)| *bytes = word.load(Ordering::Relaxed).to_le_bytes());
    }

    /// The word behind the object.
    fn mark(&self) -> &AtomicU64 {
        &self.words.all()[self.len / WORD]
    }

    /// All bytes of the object are there. Before that there are no commits.
    pub(crate) fn fill(&self) {
        self.mark().store(FILLED, Ordering::Release);
    }

    pub(super) fn is_filled(&self) -> bool {
        self.mark().load(Ordering::Acquire) == FILLED
    }

    /// The word that counts its lines which are marked, for as long as that is kept.
    pub(crate) fn pending(&self) -> Result<Counter, BackingError> {
        Ok(Counter::new(Words::of(&self.backing)?, self.len / WORD + 1))
    }

    /// Maps the object's bytes once more, at its own address.
    pub(crate) fn show(&self, addr: usize, protection: Protection) -> Result<Mapping, BackingError> {
        self.backing.show(addr, self.len, protection)
    }

    /// Its words, mapped once more.
    pub(super) fn again(&self) -> Result<Words, BackingError> {
        Words::of(&self.backing)
    }

    /// Removes it: the pool has everything.
    pub(crate) fn remove(self) -> Result<(), BackingError> {
        drop(self.words);
        self.backing.remove()
    }
}

/// A word of an object's memory that counts its lines that are marked.
#[derive(Debug)]
pub(crate) struct Counter {
    words: Words,
    at: usize,
}

impl Counter {
    fn new(words: Words, at: usize) -> Counter {
        Counter { words, at }
    }

    #[inline]
    pub(crate) fn get(&self) -> &AtomicU64 {
        &self.words.all()[self.at]
    }
}
