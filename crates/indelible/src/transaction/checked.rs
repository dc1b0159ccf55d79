//! The memory of words: in plain objects each is at its address; in objects with check words
//! (S1.12) it is with its check word at twice the offset, and every access at its address is
//! forbidden (S1.16).
//!
//! Invariants:
//! 1. The list of objects is read by transactions on objects that are in it, and changed by
//!    attaches and detaches, each of which puts a new list in its place. A list stays until no
//!    transaction runs that may read it.
//! 2. A pair of a word and its check word is stored whole, by the owner of its stripe alone, and
//!    told to the store whole, in one line.
//! 3. `Pairs` are those of an object that is attached, whose views and list entry go before its
//!    memory does.

#![allow(unsafe_code)]

use crate::error::TransactionError;
use indelible_stm::pairs::{self, PAIR, PairLine};
use indelible_stm::{Damaged, Direct, Memory};
use indelible_store::Mutant;
use indelible_store::format::LINE;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// An object with check words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    /// First address of its words, as programs have it.
    pub(super) own: usize,
    /// Bytes of words.
    pub(super) len: usize,
    /// Address of the first word, which its check word follows.
    pub(super) base: usize,
}

impl Pairs {
    /// The place of the word at this offset, which its check word follows.
    #[inline]
    fn place(&self, offset: usize) -> usize {
        self.base + 2 * offset
    }

    /// The word at this offset, a multiple of 8 below `len`, as it was last stored.
    ///
    /// # Safety
    /// The object is attached, and no transaction stores to it.
    unsafe fn read(&self, offset: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { pairs::repaired(self.place(offset)) }.ok_or(Damaged)
    }

    /// The lines of pairs that a change of a line of words is, which lies at this offset. The owner
    /// of that line asks.
    ///
    /// # Panics
    /// There is no such line.
    pub(super) fn changed<'w>(
        &self,
        offset: u64,
        change: (u64, &'w [u64; 8]),
    ) -> impl Iterator<Item = PairLine> + use<'w> {
        assert!(offset < self.len as u64, "the object has {} bytes of words", self.len);
        let base = self.base;
        // SAFETY: of an object that is attached (3), which has whole lines of words.
        let lines = unsafe { pairs::changed(base, offset, change) };
        lines.map(move |line| if Mutant::CheckWordApart.is_on() { with_old_checks(base, line) } else { line })
    }
}

/// Words without the check words that go with them.
#[cold]
fn with_old_checks(base: usize, mut line: PairLine) -> PairLine {
    for (nth, pair) in line.words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        // SAFETY: of the same line of the object.
        pair[1] = unsafe { word(base + line.offset as usize + PAIR * nth + 8) };
    }
    line
}

/// The words of an object with check words, one after the other, as they were at some moment.
pub(super) struct PlainWords(Vec<Page>);

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u64; 512]);

impl PlainWords {
    /// Copies them while no transaction runs. A damaged word gets its former value.
    pub(super) fn of(pairs: &Pairs) -> Result<PlainWords, TransactionError> {
        let mut pages = vec![Page([0; 512]); pairs.len.div_ceil(size_of::<Page>())];
        let words = pages.iter_mut().flat_map(|page| &mut page.0);
        for (into, offset) in words.zip((0..pairs.len).step_by(8)) {
            // SAFETY: the object is attached as long as its pairs are borrowed, and no transaction
            // stores to it.
            let word = unsafe { pairs.read(offset) };
            *into = word.map_err(|Damaged| TransactionError::Lost { offset: offset as u64 })?;
        }
        Ok(PlainWords(pages))
    }

    pub(super) fn base(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

/// The word at an address.
///
/// # Safety
/// It is there, in an object that is attached, and others are told of it as an atomic alone.
#[inline]
pub(super) unsafe fn word(address: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }.load(Ordering::Relaxed)
}

/// Words that transactions of this process found damaged, of all objects with check words that a
/// pool had attached at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Times that a word was repaired, also by transactions that were then undone.
    pub repaired: u64,
    /// Times that one could not be: more of its bits were wrong than can be told.
    pub lost: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Null while there are none.
    objects: AtomicPtr<Vec<Pairs>>,
    /// Lists that were replaced, and that transactions may read still.
    replaced: Mutex<Vec<List>>,
    repaired: AtomicU64,
    lost: AtomicU64,
}

/// A list that [`Words`] made, or null.
#[derive(Debug)]
struct List(*mut Vec<Pairs>);

// SAFETY: the only one that leads to it once it was replaced; its values are plain.
unsafe impl Send for List {}

impl Drop for List {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: from `Box::into_raw`, and no transaction reads it any more (1).
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

/// So many lists are kept before transactions are kept waiting to have them freed.
const KEPT: usize = 64;

impl Words {
    /// Takes in the pairs of an object that is being attached.
    pub(super) fn add(&self, pairs: Pairs) {
        self.change(|objects| objects.push(pairs));
    }

    /// The object has so many bytes of words now. No transaction that may use the new ones runs.
    pub(super) fn lengthen(&self, own: usize, len: usize) {
        self.change(|objects| {
            objects.iter_mut().filter(|pairs| pairs.own == own).for_each(|pairs| pairs.len = len);
        });
    }

    /// Forgets those of an object that no transaction uses any more.
    pub(super) fn remove(&self, own: usize) {
        self.change(|objects| objects.retain(|pairs| pairs.own != own));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Pairs>)) {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        let mut objects = self.objects().to_vec();
        change(&mut objects);
        let list = if objects.is_empty() { std::ptr::null_mut() } else { Box::into_raw(Box::new(objects)) };
        replaced.push(List(self.objects.swap(list, Ordering::AcqRel)));
    }

    /// Whether lists wait for [`forget`](Self::forget).
    pub(super) fn has_many(&self) -> bool {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).len() > KEPT
    }

    /// Frees the lists that were replaced. No transaction runs.
    ///
    /// # Safety
    /// No transaction runs.
    pub(super) unsafe fn forget(&self) {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    #[inline]
    fn objects(&self) -> &[Pairs] {
        let list = self.objects.load(Ordering::Acquire);
        // SAFETY: null, or a list that stays as long as it may be read (1).
        unsafe { list.as_ref() }.map_or(&[], Vec::as_slice)
    }

    /// Whether no word has a check word.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.objects.load(Ordering::Acquire).is_null()
    }

    /// Loads a word while some object has check words. Out of line, so that `load` is small enough
    /// to be inlined.
    ///
    /// # Safety
    /// As for [`Memory::load`].
    #[inline(never)]
    unsafe fn load_checked(&self, address: usize) -> Result<u64, Damaged> {
        let Some(place) = self.place(address) else {
            // SAFETY: the caller's promise.
            return unsafe { Direct.load(address) };
        };
        if Mutant::HalfUnchecked.is_on() && address % LINE as usize >= 32 {
            // SAFETY: the caller's promise.
            return unsafe { Direct.load(place) };
        }
        // SAFETY: the caller's promise, of an object that is in the list as long as it is attached.
        unsafe { pairs::load(place) }
    }

    /// The pair of the word at this address, if it has a check word.
    #[inline]
    fn place(&self, address: usize) -> Option<usize> {
        let found = self.objects().iter().find(|pairs| address.wrapping_sub(pairs.own) < pairs.len)?;
        Some(found.place(address - found.own))
    }

    pub(super) fn repairs(&self) -> Repairs {
        Repairs { repaired: self.repaired.load(Ordering::Relaxed), lost: self.lost.load(Ordering::Relaxed) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        drop(List(*self.objects.get_mut()));
    }
}

// SAFETY: relaxed atomics of the words themselves; a pair that is not whole is told as damaged. The
// owner of a stripe alone stores.
unsafe impl Memory for Words {
    #[inline]
    unsafe fn load(&self, address: usize) -> Result<u64, Damaged> {
        if self.is_plain() {
            // SAFETY: the caller's promise.
            return unsafe { Direct.load(address) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.load_checked(address) }
    }

    #[inline]
    unsafe fn store(&self, address: usize, value: u64, bits: u64) {
        let Some(place) = self.place(address) else {
            // SAFETY: the caller's promise.
            return unsafe { Direct.store(address, value, bits) };
        };
        // SAFETY: the caller's promise; both are of the object.
        unsafe { pairs::store(place, value, bits) }
    }

    #[inline]
    fn is_checked(&self, address: usize) -> bool {
        self.place(address).is_some() && !Mutant::DamageCertified.is_on()
    }

    #[cold]
    unsafe fn repaired(&self, address: usize) -> Option<u64> {
        let place = self.place(address)?;
        // SAFETY: as for `load`.
        let found = unsafe { pairs::repaired(place) };
        let count = if found.is_some() { &self.repaired } else { &self.lost };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }
}
