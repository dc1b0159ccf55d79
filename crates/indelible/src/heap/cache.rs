//! A thread's spans and fast paths in a heap. Its loss costs no data.
//!
//! Invariants of [`Cache`]:
//!
//! 1. One thread at a time uses it, except for `inbox`, which any thread adds spans to.
//! 2. While `left` of a class is not zero, its bits stand for blocks claimed of its current span,
//!    which the thread owns and whose window is mapped; `allocations` points at the allocation byte
//!    of the block of bit 0.
//! 3. `base` is the address of that block, and `size` the size of a block.

#![allow(unsafe_code)]

use super::allocation;
use super::layout::CLASSES;
use super::leaked::{Slot, Spare};
use super::span::{Span, place};
use crate::sys::total::Ordering::{Relaxed, SeqCst};
use crate::sys::total::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize};
use std::array::from_fn;
use std::ptr::{self, NonNull};

/// Claimed blocks go first: no allocation waits for the one before.
#[repr(align(32))]
struct Current {
    left: AtomicU64,
    allocations: AtomicPtr<AtomicU8>,
    base: AtomicUsize,
    size: AtomicUsize,
}

impl Current {
    fn blank() -> Current {
        Current {
            left: AtomicU64::new(0),
            allocations: AtomicPtr::new(ptr::null_mut()),
            base: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
        }
    }
}

pub(super) struct Cache {
    current: [Current; CLASSES],
    spans: [Slot<Span>; CLASSES],
    partial: [Slot<Span>; CLASSES],
    last: [Slot<Span>; CLASSES],
    inbox: Slot<Span>,
}

pub(super) static SPARE: Spare<Cache> = Spare::new();

impl Cache {
    pub(super) fn blank() -> Cache {
        Cache {
            current: from_fn(|_| Current::blank()),
            spans: from_fn(|_| Slot::new()),
            partial: from_fn(|_| Slot::new()),
            last: from_fn(|_| Slot::new()),
            inbox: Slot::new(),
        }
    }

    #[inline]
    pub(super) fn take(&self, class: usize) -> Option<NonNull<u8>> {
        let current = &self.current[class];
        let left = current.left.load(Relaxed);
        if left == 0 {
            return None;
        }
        current.left.store(left & (left - 1), Relaxed);
        let block = left.trailing_zeros() as usize;
        // SAFETY: the allocation byte of a block of the span (2).
        let byte = unsafe { &*current.allocations.load(Relaxed).add(block) };
        byte.store(allocation::USED, Relaxed);
        let address = current.base.load(Relaxed) + block * current.size.load(Relaxed);
        // SAFETY: the address of a block (3), in a window that does not begin at 0.
        Some(unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(address)) })
    }

    #[inline(never)]
    pub(super) fn take_next(&self, class: usize) -> Option<NonNull<u8>> {
        if self.next_blocks(class, self.spans[class].get()?) { self.take(class) } else { None }
    }

    pub(super) fn advance(&'static self, class: usize, release: &mut dyn FnMut(&'static Span)) -> bool {
        self.open_inbox(release);
        loop {
            if let Some(span) = self.spans[class].get() {
                if self.next_blocks(class, span) {
                    return true;
                }
                self.leave(class);
                span.put(place::FULL);
            }
            let Some(span) = self.partial[class].get() else { return false };
            self.unlink(span);
            self.enter(span);
        }
    }

    fn next_blocks(&self, class: usize, span: &'static Span) -> bool {
        let Some((word, claimed)) = span.claim() else { return false };
        let current = &self.current[class];
        current.left.store(claimed, Relaxed);
        current.allocations.store(span.allocations_from(word * 64), Relaxed);
        current.base.store(span.address(word * 64), Relaxed);
        current.size.store(span.size(), Relaxed);
        true
    }

    pub(super) fn enter(&self, span: &'static Span) {
        let class = span.class();
        debug_assert!(self.spans[class].get().is_none());
        self.spans[class].set(Some(span));
        span.put(place::CURRENT);
    }

    pub(super) fn shed(&'static self, release: &mut dyn FnMut(&'static Span)) -> bool {
        let mut any = false;
        let mut release = |span| {
            any = true;
            release(span);
        };
        self.open_inbox(&mut release);
        for class in 0..CLASSES {
            let Some(span) = self.spans[class].get() else { continue };
            self.leave(class);
            span.survey();
            if span.is_empty() { release(span) } else { self.enter(span) }
        }
        any
    }

    fn leave(&self, class: usize) {
        self.spans[class].set(None);
        self.current[class].left.store(0, Relaxed);
    }

    pub(super) fn link(&self, span: &'static Span) {
        let last = &self.last[span.class()];
        span.put(place::PARTIAL);
        span.next.set(None);
        span.prev.set(last.get());
        match last.get() {
            Some(prev) => prev.next.set(Some(span)),
            None => self.partial[span.class()].set(Some(span)),
        }
        last.set(Some(span));
    }

    pub(super) fn unlink(&self, span: &'static Span) {
        match span.prev.get() {
            Some(prev) => prev.next.set(span.next.get()),
            None => self.partial[span.class()].set(span.next.get()),
        }
        match span.next.get() {
            Some(next) => next.prev.set(span.prev.get()),
            None => self.last[span.class()].set(span.prev.get()),
        }
    }

    pub(super) fn span(&self, class: usize) -> Option<&'static Span> {
        self.spans[class].get()
    }

    pub(super) fn look(&self, span: &'static Span) -> bool {
        match span.place.load(Relaxed) {
            place::FULL if span.is_empty() => true,
            place::FULL => {
                self.link(span);
                false
            }
            place::PARTIAL if span.is_empty() => {
                self.unlink(span);
                true
            }
            place => {
                span.put(place);
                false
            }
        }
    }

    pub(super) fn send(&self, span: &'static Span, words: u64) {
        if span.pending.load(SeqCst) & words == words || span.pending.fetch_or(words, SeqCst) != 0 {
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

    pub(super) fn open_inbox(&'static self, release: &mut dyn FnMut(&'static Span)) {
        let mut next = if self.inbox.is_empty() { None } else { self.inbox.take() };
        while let Some(span) = next {
            next = span.waiting.get();
            // First: blocks freed from here on are sent again.
            let words = span.pending.swap(0, SeqCst);
            if span.owner.is(self) {
                span.collect(words);
                if self.look(span) {
                    release(span);
                }
            } else if let Some(owner) = span.owner.get() {
                owner.send(span, words);
            }
        }
    }

    pub(super) fn clear(&self) {
        for class in 0..CLASSES {
            self.leave(class);
            self.partial[class].set(None);
            self.last[class].set(None);
        }
        let mut next = self.inbox.take();
        while let Some(span) = next {
            next = span.waiting.get();
            span.pending.store(0, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_sent_to_a_former_owner_are_passed_on() {
        let [old, new] = [(); 2].map(|()| &*Box::leak(Box::new(Cache::blank())));
        let span = &*Box::leak(Box::new(Span::blank()));
        span.own(new);
        old.send(span, 1);
        old.open_inbox(&mut |_| panic!("the span is another thread's"));
        assert!(!new.inbox.is_empty() && span.pending.load(Relaxed) == 1);
        let mut released = false;
        new.open_inbox(&mut |_| released = true);
        assert!(released && new.inbox.is_empty() && span.pending.load(Relaxed) == 0);
    }
}
