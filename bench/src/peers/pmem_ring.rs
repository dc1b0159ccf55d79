//! The paper's list in libpmemobj: circular, doubly linked by the library's pointers, changed in
//! transactions.

#![allow(unsafe_code)]

use super::pmem::Pmem;
use crate::Result;
use crate::environment::Medium;
use std::path::Path;

const POOL: usize = 64 << 20;

#[repr(C)]
struct Links {
    before: u64,
    next: u64,
}

/// Invariant 1: the root is a linked element without payload; each link is the offset of an element
/// in the list, with `payload` words behind its links.
pub struct PmemRing {
    pmem: Pmem,
    end: u64,
    payload: usize,
}

impl PmemRing {
    pub fn create(path: &Path, payload: u64) -> Result<Option<Self>> {
        let Some(pmem) = Pmem::create(path, Medium::Memory, POOL, size_of::<Links>())? else {
            return Ok(None);
        };
        let end = pmem.offset(pmem.root());
        let ring = PmemRing { pmem, end, payload: payload as usize };
        // SAFETY: the root object has links.
        unsafe {
            ring.links(end).write(Links { before: end, next: end });
            ring.pmem.persist(ring.pmem.root(), size_of::<Links>());
        }
        Ok(Some(ring))
    }

    fn links(&self, element: u64) -> *mut Links {
        self.pmem.follow(element)
    }

    fn words(&self, element: u64) -> *mut u64 {
        self.links(element).wrapping_add(1).cast()
    }

    fn size(&self) -> usize {
        size_of::<Links>() + self.payload * 8
    }

    pub fn push(&self, value: u64) -> Result<()> {
        self.pmem.transaction(|transaction| {
            let new = transaction.alloc(self.size(), false)?;
            let end = self.links(self.end);
            // SAFETY: elements (1), and a new one, which is stored to as a whole; others are added
            // before.
            unsafe {
                let last = (*end).before;
                self.links(new).write(Links { before: last, next: self.end });
                (0..self.payload).for_each(|nth| self.words(new).add(nth).write(value));
                let link = &raw mut (*self.links(last)).next;
                transaction.add(link.cast(), 8)?;
                *link = new;
                let link = &raw mut (*end).before;
                transaction.add(link.cast(), 8)?;
                *link = new;
            }
            Ok(())
        })
    }

    pub fn pop(&self) -> Result<Option<u64>> {
        self.pmem.transaction(|transaction| {
            let end = self.links(self.end);
            // SAFETY: elements (1), added before they are stored to; one that is freed is in the
            // list no more.
            unsafe {
                let first = (*end).next;
                if first == self.end {
                    return Ok(None);
                }
                let (next, value) = ((*self.links(first)).next, *self.words(first));
                let link = &raw mut (*end).next;
                transaction.add(link.cast(), 8)?;
                *link = next;
                let link = &raw mut (*self.links(next)).before;
                transaction.add(link.cast(), 8)?;
                *link = self.end;
                transaction.free(first)?;
                Ok(Some(value))
            }
        })
    }

    pub fn sum(&self) -> Result<u64> {
        self.pmem.transaction(|_| {
            // SAFETY: elements (1).
            unsafe {
                let (mut at, mut sum) = ((*self.links(self.end)).next, 0_u64);
                while at != self.end {
                    sum = sum.wrapping_add(*self.words(at));
                    at = (*self.links(at)).next;
                }
                Ok(sum)
            }
        })
    }

    pub fn change(&self, more: u64, whole: bool) -> Result<()> {
        self.pmem.transaction(|transaction| {
            // SAFETY: elements (1), added before they are stored to.
            unsafe {
                let mut at = (*self.links(self.end)).next;
                while at != self.end {
                    let word = self.words(at);
                    match whole {
                        true => transaction.add(self.links(at).cast(), self.size())?,
                        false => transaction.add(word.cast(), 8)?,
                    }
                    *word = (*word).wrapping_add(more);
                    at = (*self.links(at)).next;
                }
            }
            Ok(())
        })
    }
}
