//! The memory of words: in plain objects each is at its address; with check words (S1.12) word and
//! check word are at twice the offset, and access at the word's address is forbidden (S1.16).
//!
//! Invariants:
//!
//! 1. Transactions on listed objects read the list of objects; attaches and detaches replace it. A
//!    list stays until no transaction that may read it runs.
//! 2. A pair of a word and its check word is stored whole, by the owner of its stripe alone, and
//!    told to the store whole, in one line.
//! 3. `Pairs` are those of an attached object, whose views and list entry go before its memory
//!    does.

#![allow(unsafe_code)]

use crate::error::TransactionError;
use indelible_stm::pairs::{self, PAIR, PairLine};
use indelible_stm::{Damaged, Direct, Memory};
use indelible_store::Mutant;
use indelible_store::format::LINE;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    pub(super) own: usize,
    pub(super) len: usize,
    pub(super) base: usize,
}

impl Pairs {
    #[inline]
    fn place(&self, offset: usize) -> usize {
        self.base + 2 * offset
    }

    /// # Safety
    /// The object is attached, no transaction stores to it, and `offset` is a multiple of 8 below
    /// `len`.
    unsafe fn read(&self, offset: usize) -> Result<u64, Damaged> {
        // SAFETY: the caller's promise.
        unsafe { pairs::repaired(self.place(offset)) }.ok_or(Damaged)
    }

    /// The caller owns the line at this offset.
    pub(super) fn changed<'w>(
        &self,
        offset: u64,
        change: (u64, &'w [u64; 8]),
    ) -> impl Iterator<Item = PairLine> + use<'w> {
        assert!(offset < self.len as u64, "the object has {} bytes of words", self.len);
        let base = self.base;
        // SAFETY: of an attached object (3), which has whole lines of words.
        let lines = unsafe { pairs::changed(base, offset, change) };
        lines.map(move |line| if Mutant::CheckWordApart.is_on() { with_old_checks(base, line) } else { line })
    }
}

#[cold]
fn with_old_checks(base: usize, mut line: PairLine) -> PairLine {
    for (nth, pair) in line.words.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        // SAFETY: of the same line of the object.
        pair[1] = unsafe { word(base + line.offset as usize + PAIR * nth + 8) };
    }
    line
}

pub(super) struct PlainWords(Vec<Page>);

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u64; 512]);

impl PlainWords {
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

/// # Safety
/// The word is in an attached object, and other threads access it only as an atomic.
#[inline]
pub(super) unsafe fn word(address: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }.load(Ordering::Relaxed)
}

/// Words that this process's transactions found damaged in a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Repairs of words, also by transactions that were then undone.
    pub repaired: u64,
    /// Words with too many wrong bits for a repair.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub(super) struct Words {
    objects: AtomicPtr<Vec<Pairs>>,
    replaced: Mutex<Vec<List>>,
    repaired: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct List(*mut Vec<Pairs>);

// SAFETY: the only pointer to it once it was replaced; its values are plain.
unsafe impl Send for List {}

impl Drop for List {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: from `Box::into_raw`, and no transaction reads it any more (1).
            drop(unsafe { Box::from_raw(self.0) });
        }
    }
}

/// Lists kept before transactions must wait for their release.
const KEPT: usize = 64;

impl Words {
    pub(super) fn add(&self, pairs: Pairs) {
        self.change(|objects| objects.push(pairs));
    }

    pub(super) fn lengthen(&self, own: usize, len: usize) {
        self.change(|objects| {
            objects.iter_mut().filter(|pairs| pairs.own == own).for_each(|pairs| pairs.len = len);
        });
    }

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

    pub(super) fn has_many(&self) -> bool {
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).len() > KEPT
    }

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

    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.objects.load(Ordering::Acquire).is_null()
    }

    /// Out of line, so that `load` is inlined.
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
        // SAFETY: the caller's promise, of an object listed as long as it is attached.
        unsafe { pairs::load(place) }
    }

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

// SAFETY: relaxed atomics of the words themselves; a pair that is not whole is told as damaged.
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
