#![allow(unsafe_code)]

use super::persist::Persist;
use super::place::{change, discard, stored};
use super::vec::PVec;
use std::ptr;

impl<'h, T: Persist<'h>> PVec<'h, T> {
    /// Drops elements for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let mut gap = Gap { kept: 0, next: 0, len: self.len(), vec: self };
        // A leaked or unclosed gap leaves no element twice.
        gap.vec.set_len(0);
        while gap.next < gap.len {
            // SAFETY: each element is looked at once.
            unsafe {
                let at = gap.vec.start().add(gap.next);
                let stays = change(at, &mut keep);
                gap.next += 1;
                if stays {
                    gap.keep(at);
                } else {
                    discard(at);
                }
            }
        }
    }

    /// Drops each element that is the `same` as the last kept one; `same` gets the later one first.
    pub fn dedup_by(&mut self, mut same: impl FnMut(&mut T, &mut T) -> bool) {
        let mut gap = Gap { kept: 0, next: 0, len: self.len(), vec: self };
        gap.vec.set_len(0);
        while gap.next < gap.len {
            // SAFETY: as for `retain`; the last kept one lies before the gap.
            unsafe {
                let at = gap.vec.start().add(gap.next);
                let before = gap.vec.start().wrapping_add(gap.kept.wrapping_sub(1));
                let goes = gap.kept > 0 && change(at, |this| change(before, |before| same(this, before)));
                gap.next += 1;
                if goes {
                    discard(at);
                } else {
                    gap.keep(at);
                }
            }
        }
    }

    /// Drops each element whose key is that of the last kept one.
    pub fn dedup_by_key<K: PartialEq>(&mut self, mut key: impl FnMut(&mut T) -> K) {
        self.dedup_by(|this, before| key(this) == key(before));
    }

    /// Drops each element equal to the one before it.
    pub fn dedup(&mut self)
    where
        T: PartialEq,
    {
        self.dedup_by(|this, before| this == before);
    }
}

struct Gap<'a, 'h, T: Persist<'h>> {
    vec: &'a mut PVec<'h, T>,
    kept: usize,
    next: usize,
    len: usize,
}

impl<'h, T: Persist<'h>> Gap<'_, 'h, T> {
    /// # Safety
    /// The element was looked at, and has no other owner.
    #[inline]
    unsafe fn keep(&mut self, at: *mut T) {
        // SAFETY: to a place that was looked at before, or its own.
        unsafe {
            let target = self.vec.start().add(self.kept);
            ptr::copy(at, target, 1);
            stored(target, 1);
        }
        self.kept += 1;
    }
}

impl<'h, T: Persist<'h>> Drop for Gap<'_, 'h, T> {
    fn drop(&mut self) {
        let left = self.len - self.next;
        if left > 0 {
            let start = self.vec.start();
            // SAFETY: elements that were not looked at, to free places.
            unsafe {
                ptr::copy(start.add(self.next), start.add(self.kept), left);
                stored(start.add(self.kept), left);
            }
        }
        self.vec.set_len(self.kept + left);
    }
}
