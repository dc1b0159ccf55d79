//! This process's view of a span: its blocks, allocation bytes, and owner thread. Only the
//! allocation bytes in the object say which blocks are in use; `unused` is a copy for fast search,
//! made anew for each owner.
//!
//! Invariants of [`Span`], as long as it is live:
//!
//! 1. `allocations` points at `count` bytes, at most `SPAN_BLOCKS`, in a mapped window; its header
//!    and allocation bytes were verified when it was adopted.
//! 2. Only the owner, or with the heap's lock the thread that finds no owner, changes `unused`,
//!    `place`, `unheeded` and the links `next` and `prev`, and changes allocation bytes; except
//!    that any thread may free a block that is in use.
//! 3. A bit of `unused` is set if its block is marked as free and the owner has not claimed it.
//!    Blocks freed by others are missing until the owner notices.
//! 4. While an owner has a span that is not current, `unheeded` is at least 1, and no more than the
//!    blocks that it must free before the span is empty, or gets its first free block.
//! 5. A span whose `pending` is not zero waits in an inbox. Bit *i* is set for a block freed by
//!    others among those of word *i* of `unused`; it is set after the allocation byte, and cleared
//!    before allocation bytes are looked at.
//! 6. `at_hand` is the owner if it is known that no block has a root, else nothing. It, `rooted`
//!    and `roots` change with the heap's lock.

#![allow(unsafe_code)]

use super::allocation;
use super::cache::Cache;
use super::layout::{CLASSES, SPAN_BLOCKS};
use super::leaked::{Slot, Spare};
use crate::sys::total::Ordering::{Relaxed, SeqCst};
use crate::sys::total::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence};
use std::ptr;

pub(super) mod place {
    pub(crate) const CURRENT: u8 = 0;
    pub(crate) const PARTIAL: u8 = 1;
    pub(crate) const FULL: u8 = 2;
    pub(crate) const NEW: u8 = 3;
}

mod rooted {
    pub(super) const UNKNOWN: u8 = 0;
    pub(super) const NONE: u8 = 1;
    pub(super) const SOME: u8 = 2;
}

const WORDS: usize = SPAN_BLOCKS / 64;

/// Bounds dirty pages.
const AHEAD: usize = 16 << 10;

/// Fields read by freeing come first, and fill a line; fields stored by other threads have a line
/// of their own.
#[repr(C, align(64))]
pub(super) struct Span {
    data: AtomicUsize,
    /// 2^64 divided by the size of a block, rounded up.
    reciprocal: AtomicU64,
    allocations: AtomicPtr<AtomicU8>,
    pub(super) at_hand: Slot<Cache>,
    count: AtomicU32,
    unheeded: AtomicU32,
    size: AtomicU32,
    pub(super) place: AtomicU8,
    class: AtomicU8,
    rooted: AtomicU8,
    ahead: AtomicU64,
    pub(super) owner: Slot<Cache>,
    unused: [AtomicU64; WORDS],
    pub(super) pending: AtomicU64,
    pub(super) waiting: Slot<Span>,
    pub(super) next: Slot<Span>,
    pub(super) prev: Slot<Span>,
    roots: [AtomicU64; WORDS],
    page: AtomicU64,
    pages: AtomicU64,
    first: AtomicU64,
    pub(super) index: AtomicUsize,
    pub(super) listed: AtomicBool,
    pub(super) live: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub(super) page: u64,
    pub(super) pages: u64,
    pub(super) class: usize,
    pub(super) size: usize,
    pub(super) data: usize,
    pub(super) first: u64,
}

pub(super) static SPARE: Spare<Span> = Spare::new();

impl Span {
    pub(super) fn blank() -> Span {
        Span {
            data: AtomicUsize::new(0),
            reciprocal: AtomicU64::new(0),
            allocations: AtomicPtr::new(ptr::null_mut()),
            at_hand: Slot::new(),
            count: AtomicU32::new(0),
            unheeded: AtomicU32::new(1),
            size: AtomicU32::new(1),
            place: AtomicU8::new(place::FULL),
            class: AtomicU8::new(0),
            rooted: AtomicU8::new(rooted::UNKNOWN),
            ahead: AtomicU64::new(1),
            owner: Slot::new(),
            unused: std::array::from_fn(|_| AtomicU64::new(0)),
            pending: AtomicU64::new(0),
            waiting: Slot::new(),
            next: Slot::new(),
            prev: Slot::new(),
            roots: std::array::from_fn(|_| AtomicU64::new(0)),
            page: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            first: AtomicU64::new(0),
            index: AtomicUsize::new(0),
            listed: AtomicBool::new(false),
            live: AtomicBool::new(false),
        }
    }

    /// A `new` span has no block in use.
    ///
    /// # Safety
    /// (1) holds from here on, as long as the span is live.
    pub(super) unsafe fn become_of(&self, site: &Site, bytes: &[AtomicU8], new: bool) {
        let Site { page, pages, class, size, data, first } = *site;
        self.data.store(data, Relaxed);
        self.reciprocal.store(u64::MAX / size as u64 + 1, Relaxed);
        self.size.store(size as u32, Relaxed);
        self.count.store(bytes.len() as u32, Relaxed);
        self.allocations.store(bytes.as_ptr().cast_mut(), Relaxed);
        self.ahead.store(u64::MAX >> (64 - (AHEAD / size).clamp(1, 64)), Relaxed);
        self.class.store(class as u8, Relaxed);
        self.page.store(page, Relaxed);
        self.first.store(first, Relaxed);
        self.pages.store(pages, Relaxed);
        self.listed.store(false, Relaxed);
        self.live.store(true, Relaxed);
        self.have(None);
        self.rooted.store(rooted::UNKNOWN, Relaxed);
        if new {
            (0..WORDS).for_each(|word| self.unused[word].store(self.valid(word), Relaxed));
            self.put(place::NEW);
        } else {
            self.put(place::FULL);
            self.survey();
        }
    }

    #[inline]
    pub(super) fn class(&self) -> usize {
        usize::from(self.class.load(Relaxed)).min(CLASSES - 1)
    }

    pub(super) fn page(&self) -> u64 {
        self.page.load(Relaxed)
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages.load(Relaxed)
    }

    #[inline]
    pub(super) fn size(&self) -> usize {
        self.size.load(Relaxed) as usize
    }

    fn count(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    #[inline]
    pub(super) fn block(&self, address: usize) -> Option<usize> {
        divide(
            address.wrapping_sub(self.data.load(Relaxed)) as u64,
            self.reciprocal.load(Relaxed),
            u64::from(self.count.load(Relaxed)),
        )
    }

    #[inline]
    pub(super) fn block_around(&self, address: usize) -> Option<usize> {
        let delta = address.checked_sub(self.data.load(Relaxed))?;
        let block = delta / self.size();
        (block < self.count()).then_some(block)
    }

    pub(super) fn address(&self, block: usize) -> usize {
        self.data.load(Relaxed) + block * self.size()
    }

    #[inline]
    pub(super) fn allocation(&self, block: usize) -> &AtomicU8 {
        debug_assert!(block < self.count());
        // SAFETY: an allocation byte (1): callers have the number from `block`, `claim` or `count`.
        unsafe { &*self.allocations.load(Relaxed).add(block) }
    }

    pub(super) fn allocations_from(&self, block: usize) -> *mut AtomicU8 {
        self.allocations.load(Relaxed).wrapping_add(block)
    }

    pub(super) fn allocation_offset(&self, block: usize) -> u64 {
        self.first.load(Relaxed) + block as u64
    }

    pub(super) fn have(&self, owner: Option<&'static Cache>) {
        let is_free_of_roots = self.rooted.load(Relaxed) == rooted::NONE;
        self.at_hand.set(owner.filter(|_| is_free_of_roots));
        self.owner.set(owner);
    }

    pub(super) fn mark_roots(&self, blocks: impl Iterator<Item = usize>) {
        self.roots.iter().for_each(|word| word.store(0, Relaxed));
        let mut known = rooted::NONE;
        for block in blocks {
            let word = &self.roots[block / 64 % WORDS];
            word.store(word.load(Relaxed) | 1 << (block % 64), Relaxed);
            known = rooted::SOME;
        }
        self.rooted.store(known, Relaxed);
        self.have(self.owner.get());
    }

    /// `None`: unknown.
    pub(super) fn has_root(&self, block: usize) -> Option<bool> {
        match self.rooted.load(Relaxed) {
            rooted::UNKNOWN => None,
            _ => Some(self.roots[block / 64 % WORDS].load(Relaxed) >> (block % 64) & 1 == 1),
        }
    }

    pub(super) fn own(&self, cache: &'static Cache) {
        self.have(Some(cache));
        if self.place.load(Relaxed) != place::NEW {
            // Threads that change its allocation bytes from here on see the owner.
            fence(SeqCst);
            self.survey();
        }
    }

    /// The span has claimed no blocks. With the heap's lock.
    pub(super) fn disown(&self) {
        self.put(place::FULL);
        self.have(None);
        fence(SeqCst);
        self.survey();
    }

    /// The caller may by (2), and no block is claimed.
    pub(super) fn survey(&self) {
        for (word, free) in self.unused.iter().enumerate() {
            free.store(0, Relaxed);
            self.gather(word, |byte| matches!(byte, allocation::FREE | allocation::FREED));
        }
    }

    fn gather(&self, word: usize, wanted: impl Fn(u8) -> bool) {
        let first = word * 64;
        let mut bits = self.unused[word].load(Relaxed);
        for block in first..self.count().min(first + 64) {
            let byte = self.allocation(block);
            let found = byte.load(SeqCst);
            if wanted(found) {
                bits |= 1 << (block - first);
                if found == allocation::FREED {
                    byte.store(allocation::FREE, Relaxed);
                }
            }
        }
        self.unused[word].store(bits, Relaxed);
    }

    /// The caller may by (2).
    pub(super) fn collect(&self, words: u64) {
        for word in (0..WORDS).filter(|word| words >> word & 1 == 1) {
            self.gather(word, |byte| byte == allocation::FREED);
        }
    }

    pub(super) fn claim(&self) -> Option<(usize, u64)> {
        let found = |free: &AtomicU64| free.load(Relaxed) != 0;
        let word = self.unused.iter().position(found)?;
        let bits = self.unused[word].load(Relaxed);
        let claimed = bits & (self.ahead.load(Relaxed) << bits.trailing_zeros());
        self.unused[word].store(bits & !claimed, Relaxed);
        Some((word, claimed))
    }

    fn valid(&self, word: usize) -> u64 {
        match self.count().saturating_sub(word * 64) {
            rest @ 0..64 => (1 << rest) - 1,
            _ => u64::MAX,
        }
    }

    pub(super) fn has_free(&self) -> bool {
        self.unused.iter().any(|free| free.load(Relaxed) != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        (0..WORDS).all(|word| self.unused[word].load(Relaxed) == self.valid(word))
    }

    /// Sets the span's place, and keeps (4).
    pub(super) fn put(&self, place: u8) {
        let unheeded = match place {
            place::CURRENT => u32::MAX,
            place::PARTIAL => {
                let words = self.unused.iter().map(|free| free.load(Relaxed)).filter(|word| *word != 0);
                let free: u32 = words.map(u64::count_ones).sum();
                self.count.load(Relaxed).saturating_sub(free).max(1)
            }
            _ => 1,
        };
        self.place.store(place, Relaxed);
        self.unheeded.store(unheeded, Relaxed);
    }

    #[inline]
    pub(super) fn free_unheeded(&self, block: usize) -> bool {
        let byte = self.allocation(block);
        if byte.load(Relaxed) != allocation::USED {
            return false;
        }
        let unheeded = self.unheeded.load(Relaxed).wrapping_sub(1);
        self.unheeded.store(unheeded, Relaxed);
        if unheeded == 0 {
            return false;
        }
        self.set_free(block, byte);
        true
    }

    pub(super) fn free(&self, block: usize) {
        self.set_free(block, self.allocation(block));
    }

    pub(super) fn free_for_owner(&'static self, block: usize) -> bool {
        if self
            .allocation(block)
            .compare_exchange(allocation::USED, allocation::FREED, SeqCst, Relaxed)
            .is_err()
        {
            return false;
        }
        if let Some(owner) = self.owner.latest() {
            owner.send(self, 1 << (block / 64));
        }
        true
    }

    #[inline]
    fn set_free(&self, block: usize, byte: &AtomicU8) {
        byte.store(allocation::FREE, Relaxed);
        let word = &self.unused[block / 64 % WORDS];
        word.store(word.load(Relaxed) | 1 << (block % 64), Relaxed);
    }
}

#[inline]
fn divide(delta: u64, reciprocal: u64, count: u64) -> Option<usize> {
    // 2^64 times the quotient. The reciprocal is too large by less than 1, so that a fraction of no
    // more than delta, below 2^20, is none; one of a byte is the reciprocal. The quotient grows
    // with delta and is `count` behind the last block: no other delta passes.
    let product = u128::from(delta) * u128::from(reciprocal);
    let (block, fraction) = ((product >> 64) as u64, product as u64);
    (block < count && fraction < reciprocal).then_some(block as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::class::{Geometry, span_pages};

    #[test]
    fn fields_that_other_threads_store_to_have_their_own_lines() {
        assert_eq!(std::mem::offset_of!(Span, unused), 64);
        assert_eq!(std::mem::offset_of!(Span, pending) % 64, 0);
    }

    #[test]
    fn blocks_are_found_by_their_first_byte_alone() {
        for class in 0..CLASSES {
            let Geometry { size, count, .. } = Geometry::of(class, span_pages(class, 6)).unwrap();
            let (reciprocal, count) = (u64::MAX / size as u64 + 1, count as u64);
            let size = size as u64;
            for delta in 0..size * (count + 2) {
                let block = (delta / size < count && delta % size == 0).then_some((delta / size) as usize);
                assert_eq!(divide(delta, reciprocal, count), block, "{delta} / {size}");
            }
            for delta in [u64::MAX, size.wrapping_neg(), 1 << 63, 1 << 32, 1 << 20] {
                assert_eq!(divide(delta, reciprocal, count), None, "{delta} / {size}");
            }
        }
    }
}
