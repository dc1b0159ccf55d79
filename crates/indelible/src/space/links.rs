//! Resolved entries of an object, by number: a word each, set by any thread and read without a
//! lock.

use super::slots::{NEAR, PIECES, place};
use crate::far::Rights;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) target: u32,
    pub(super) rights: Rights,
}

const SET: u64 = 1 << 40;

impl Link {
    fn word(self) -> u64 {
        SET | u64::from(self.rights.bits()) << 32 | u64::from(self.target)
    }

    #[inline]
    fn of(word: u64) -> Option<Link> {
        let rights = Rights::from_bits((word >> 32) as u8)?;
        (word & SET != 0).then_some(Link { target: word as u32, rights })
    }
}

/// If two threads resolve one entry, either result will do.
pub(super) struct Links {
    near: Box<[AtomicU64; NEAR]>,
    pieces: [OnceLock<Box<[AtomicU64]>>; PIECES],
}

impl Links {
    pub(super) fn new() -> Links {
        Links {
            near: Box::new([const { AtomicU64::new(0) }; NEAR]),
            pieces: [const { OnceLock::new() }; PIECES],
        }
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<Link> {
        let word = match self.near.get(index) {
            Some(word) => word,
            None => self.word(index)?,
        };
        Link::of(word.load(Ordering::Acquire))
    }

    #[inline]
    fn word(&self, index: usize) -> Option<&AtomicU64> {
        let (piece, slot) = place(index);
        self.pieces.get(piece)?.get()?.get(slot)
    }

    #[inline]
    pub(super) fn set(&self, index: usize, link: Link) -> bool {
        if let Some(word) = self.near.get(index) {
            word.store(link.word(), Ordering::Release);
            return true;
        }
        let (piece, slot) = place(index);
        let Some(words) = self.pieces.get(piece) else { return false };
        let words = words.get_or_init(|| (0..NEAR << piece).map(|_| AtomicU64::new(0)).collect());
        words[slot].store(link.word(), Ordering::Release);
        true
    }

    pub(super) fn clear(&mut self) {
        *self = Links::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_by_their_numbers_until_they_are_forgotten() {
        let mut links = Links::new();
        for index in [0, 15, 16, 47, 48, 100_000, (1 << 24) - 1] {
            let all = [Rights::READ, Rights::READ | Rights::WRITE, Rights::ALL];
            for (rights, target) in all.into_iter().zip([0, 7, u32::MAX]) {
                assert!(links.set(index, Link { target, rights }));
                assert_eq!(links.get(index), Some(Link { target, rights }));
            }
            assert!(links.get(index ^ 1).is_none());
        }
        assert!(!links.set(1 << 60, Link { target: 0, rights: Rights::READ }));
        links.clear();
        assert!(links.get(15).is_none() && links.get(48).is_none());
    }
}
