//! A thread's part of a heap: the spans it owns, and the fast paths. Nothing here says which blocks are
//! in use; if it is lost, nothing is.
//!
//! Invariants of [`Cache`]:
//! 1. One thread at a time uses it, except for `inbox`, which takes spans from any.
//! 2. `word` of a class points at a word of `allocated` of its current span, which the thread owns and
//!    whose window is mapped, or at a word that is always full.
//! 3. `base` is the address of the block of that word's lowest bit, and `size` that of its blocks.

#![allow(unsafe_code)]

use super::layout::CLASSES;
use super::leaked::{Slot, Spare};
use super::span::{Span, place};
use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

/// Where a thread allocates blocks of a class.
struct Current {
    word: AtomicPtr<AtomicU64>,
    base: AtomicUsize,
    size: AtomicUsize,
    index: AtomicUsize,
}

pub(super) struct Cache {
    current: [Current; CLASSES],
    spans: [Slot<Span>; CLASSES],
    partial: [Slot<Span>; CLASSES],
    inbox: Slot<Span>,
}

/// The word of those who have none.
static FULL: AtomicU64 = AtomicU64::new(u64::MAX);

/// Caches of threads that ended.
pub(super) static SPARE: Spare<Cache> = Spare::new();

/// What became of a block that its owner freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freed {
    Done,
    /// Nothing in its word is in use any more, or its span was full.
    Look,
    Twice,
}

impl Cache {
    pub(super) fn blank() -> Cache {
        let current = || Current {
            word: AtomicPtr::new(ptr::from_ref(&FULL).cast_mut()),
            base: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            index: AtomicUsize::new(0),
        };
        Cache {
            current: std::array::from_fn(|_| current()),
            spans: [const { Slot::new() }; CLASSES],
            partial: [const { Slot::new() }; CLASSES],
            inbox: Slot::new(),
        }
    }

    /// A block of `class`, if the current word has one: two loads, one store to the object.
    #[inline]
    pub(super) fn take(&self, class: usize) -> Option<usize> {
        let current = &self.current[class];
        // SAFETY: a word of a bitmap, or the one that is full (2).
        let word = unsafe { &*current.word.load(Relaxed) };
        let bits = word.load(Relaxed);
        if bits == u64::MAX {
            return None;
        }
        word.store(bits | (bits + 1), Relaxed);
        let block = (!bits).trailing_zeros() as usize;
        Some(current.base.load(Relaxed) + block * current.size.load(Relaxed))
    }

    /// Frees a block of a span that this thread owns.
    #[inline]
    pub(super) fn free(span: &Span, block: usize) -> Freed {
        let (word, bit) = (block / 64, 1_u64 << (block % 64));
        let allocated = span.allocated(word);
        let bits = allocated.load(Relaxed);
        if bits & bit == 0 || span.freed(word).load(Relaxed) & bit != 0 {
            return Freed::Twice;
        }
        allocated.store(bits & !bit, Relaxed);
        if bits == u64::MAX {
            span.summary.store(span.summary.load(Relaxed) | 1 << word, Relaxed);
        }
        // Bits beyond the last block are always set; elsewhere they cost a look too many.
        let last = bits == bit || bits == bit | span.beyond.load(Relaxed);
        match span.place.load(Relaxed) {
            place::CURRENT => Freed::Done,
            place::FULL => Freed::Look,
            _ if last => Freed::Look,
            _ => Freed::Done,
        }
    }

    /// Goes on to a word with a free block, in the current span or another of the thread's. Spans that
    /// turn out to be empty are given to `release`.
    pub(super) fn advance(&'static self, class: usize, release: &mut dyn FnMut(&'static Span)) -> bool {
        if let Some(span) = self.spans[class].get() {
            if self.next_word(class, span) || (span.collect() && self.next_word(class, span)) {
                return true;
            }
            self.leave(class);
            span.place.store(place::FULL, Relaxed);
        }
        loop {
            while let Some(span) = self.partial[class].get() {
                self.unlink(span);
                self.enter(span);
                if self.next_word(class, span) || (span.collect() && self.next_word(class, span)) {
                    return true;
                }
                self.leave(class);
                span.place.store(place::FULL, Relaxed);
            }
            self.open_inbox(release);
            if self.partial[class].get().is_none() {
                return false;
            }
        }
    }

    fn next_word(&self, class: usize, span: &'static Span) -> bool {
        let mut summary = span.summary.load(Relaxed);
        while summary != 0 {
            let index = summary.trailing_zeros() as usize;
            if span.allocated(index).load(Relaxed) != u64::MAX {
                span.summary.store(summary, Relaxed);
                let current = &self.current[class];
                current.word.store(ptr::from_ref(span.allocated(index)).cast_mut(), Relaxed);
                current.base.store(span.base(index), Relaxed);
                current.size.store(span.size(), Relaxed);
                current.index.store(index, Relaxed);
                return true;
            }
            summary &= summary - 1;
        }
        span.summary.store(0, Relaxed);
        false
    }

    /// Makes a span of this thread the one it allocates from.
    pub(super) fn enter(&self, span: &'static Span) {
        let class = span.class();
        debug_assert!(self.spans[class].get().is_none());
        self.spans[class].set(Some(span));
        span.place.store(place::CURRENT, Relaxed);
        self.current[class].word.store(ptr::from_ref(&FULL).cast_mut(), Relaxed);
    }

    fn leave(&self, class: usize) {
        self.spans[class].set(None);
        self.current[class].word.store(ptr::from_ref(&FULL).cast_mut(), Relaxed);
    }

    /// Puts a span of this thread into its list of those with free blocks.
    pub(super) fn link(&self, span: &'static Span) {
        let head = &self.partial[span.class()];
        let next = head.get();
        span.place.store(place::PARTIAL, Relaxed);
        span.prev.set(None);
        span.next.set(next);
        if let Some(next) = next {
            next.prev.set(Some(span));
        }
        head.set(Some(span));
    }

    pub(super) fn unlink(&self, span: &'static Span) {
        match span.prev.get() {
            Some(prev) => prev.next.set(span.next.get()),
            None => self.partial[span.class()].set(span.next.get()),
        }
        if let Some(next) = span.next.get() {
            next.prev.set(span.prev.get());
        }
    }

    /// Offset of the current word, for naming stores.
    pub(super) fn word_offset(&self, class: usize) -> Option<(u64, usize)> {
        let index = self.current[class].index.load(Relaxed);
        self.spans[class].get().map(|span| span.word_offset(index))
    }

    /// Looks after a span of this thread in which a block became free; returns whether it is empty and
    /// nobody's any more.
    pub(super) fn look(&self, span: &'static Span) -> bool {
        match span.place.load(Relaxed) {
            place::CURRENT => false,
            place::FULL if span.is_empty() => true,
            place::FULL => {
                self.link(span);
                false
            }
            _ if span.is_empty() => {
                self.unlink(span);
                true
            }
            _ => false,
        }
    }

    /// Another thread freed a block of `span`, which this one owns.
    pub(super) fn send(&self, span: &'static Span) {
        if span.queued.load(SeqCst) || span.queued.swap(true, SeqCst) {
            return;
        }
        loop {
            let head = self.inbox.get();
            span.waiting.set(head);
            if self.inbox.replace(head, Some(span)) {
                return;
            }
        }
    }

    /// Takes in what others freed.
    pub(super) fn open_inbox(&'static self, release: &mut dyn FnMut(&'static Span)) {
        let mut next = self.inbox.take();
        while let Some(span) = next {
            next = span.waiting.get();
            // First: what is freed from here on is sent again.
            span.queued.store(false, SeqCst);
            if span.owner.is(self) {
                span.collect();
                if self.look(span) {
                    release(span);
                }
            }
        }
    }

    /// Forgets all spans; for a thread that ends.
    pub(super) fn clear(&self) {
        for class in 0..CLASSES {
            self.leave(class);
            self.partial[class].set(None);
        }
        let mut next = self.inbox.take();
        while let Some(span) = next {
            next = span.waiting.get();
            span.queued.store(false, SeqCst);
        }
    }
}
