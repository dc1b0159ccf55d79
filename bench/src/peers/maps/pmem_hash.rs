//! A hash map on libpmemobj's transactions: buckets of chained entries, doubled at one entry per
//! bucket. Links are offsets of 8 bytes.

#![allow(unsafe_code)]

use super::{GONE, NativeMap, Opened, Pair, Place, on_pmem};
use crate::Result;
use crate::peers::pmem::{Pmem, Transaction};
use indelible::collections::KeyHash;

const FIRST: u64 = 1024;

/// Invariant 1: `buckets` is the offset of a block of `count` offsets, a power of two, each 0 or a
/// chain's first entry.
#[repr(C)]
struct Root {
    buckets: u64,
    count: u64,
    entries: u64,
}

/// Invariant 2: `next` is 0 or the offset of another entry.
#[repr(C)]
struct Entry {
    key: u64,
    value: u64,
    next: u64,
}

struct PmemHash(Pmem);

pub fn open(place: &Place<'_>) -> Result<Opened> {
    on_pmem(place, size_of::<Root>(), PmemHash::begin, PmemHash)
}

fn hash(key: u64) -> u64 {
    let mut hash = KeyHash::new(0);
    hash.number(key);
    hash.finish()
}

impl PmemHash {
    fn begin(pmem: Pmem) -> Result<PmemHash> {
        let map = PmemHash(pmem);
        map.0.transaction(|transaction| {
            // SAFETY: the root object, added before it is stored to.
            unsafe {
                transaction.add(map.0.root(), size_of::<Root>())?;
                let buckets = transaction.alloc(FIRST as usize * 8, true)?;
                *map.root() = Root { buckets, count: FIRST, entries: 0 };
            }
            Ok(())
        })?;
        Ok(map)
    }

    fn root(&self) -> *mut Root {
        self.0.root().cast()
    }

    fn bucket(&self, key: u64) -> *mut u64 {
        // SAFETY: (1).
        unsafe {
            self.0.at::<u64>((*self.root()).buckets).add((hash(key) & ((*self.root()).count - 1)) as usize)
        }
    }

    fn find(&self, key: u64) -> Option<*mut Entry> {
        // SAFETY: (1, 2).
        unsafe {
            let mut at = *self.bucket(key);
            while at != 0 {
                let entry = self.0.at::<Entry>(at);
                if (*entry).key == key {
                    return Some(entry);
                }
                at = (*entry).next;
            }
        }
        None
    }

    fn put(&self, transaction: &Transaction<'_>, (key, value): Pair) -> Result<()> {
        // SAFETY: (1, 2); the stores go to places that are new, or were added before.
        unsafe {
            if let Some(entry) = self.find(key) {
                transaction.add((&raw const (*entry).value).cast(), 8)?;
                (*entry).value = value;
                return Ok(());
            }
            let root = self.root();
            transaction.add(root.cast(), size_of::<Root>())?;
            if (*root).entries == (*root).count {
                self.grow(transaction)?;
            }
            let (bucket, at) = (self.bucket(key), transaction.alloc(size_of::<Entry>(), false)?);
            self.0.at::<Entry>(at).write(Entry { key, value, next: *bucket });
            transaction.add(bucket.cast(), 8)?;
            *bucket = at;
            (*root).entries += 1;
        }
        Ok(())
    }

    fn grow(&self, transaction: &Transaction<'_>) -> Result<()> {
        // SAFETY: as for `put`.
        unsafe {
            let (old, count) = ((*self.root()).buckets, (*self.root()).count);
            let new = transaction.alloc(count as usize * 16, true)?;
            ((*self.root()).buckets, (*self.root()).count) = (new, count * 2);
            for index in 0..count as usize {
                let mut at = *self.0.at::<u64>(old).add(index);
                while at != 0 {
                    let entry = self.0.at::<Entry>(at);
                    let (bucket, next) = (self.bucket((*entry).key), (*entry).next);
                    transaction.add((&raw const (*entry).next).cast(), 8)?;
                    (*entry).next = *bucket;
                    *bucket = at;
                    at = next;
                }
            }
            transaction.free(old)
        }
    }
}

impl NativeMap for PmemHash {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        self.0.transaction(|transaction| pairs.iter().try_for_each(|pair| self.put(transaction, *pair)))
    }

    fn look(&mut self, keys: &[u64], _: usize) -> Result<u64> {
        let mut sum: u64 = 0;
        for key in keys {
            // SAFETY: an entry (2).
            sum = sum.wrapping_add(unsafe { (*self.find(*key).ok_or(GONE)?).value });
        }
        Ok(sum)
    }

    fn walk(&mut self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        // SAFETY: (1, 2).
        unsafe {
            for index in 0..(*self.root()).count as usize {
                let mut at = *self.0.at::<u64>((*self.root()).buckets).add(index);
                while at != 0 {
                    let entry = self.0.at::<Entry>(at);
                    each((*entry).key, (*entry).value);
                    at = (*entry).next;
                }
            }
        }
        Ok(())
    }
}
