//! libpmemobj: arrays in the root object; a transaction between two syncs snapshots pages before
//! stores.

#![allow(unsafe_code)]

use super::{ArrayBackend, Opened, PAGE, Place, Touched};
use crate::Result;
use crate::environment::Medium;
use crate::peers::pmem::{MISSING, Pmem};
use std::ops::Range;

const LINE: usize = 64;

/// Invariants: 1. `arrays` are disjoint, aligned to lines, in the pool's root object. 2. While
/// `in_transaction`, this thread has one.
struct PmemObj {
    pool: Pmem,
    arrays: Vec<(*mut u8, usize)>,
    taken: Vec<Touched>,
    in_transaction: bool,
    taking: Result<()>,
}

pub fn open(place: &Place<'_>, lengths: &[usize]) -> Result<Opened> {
    if place.medium == Medium::File {
        let why =
            "On a disk it calls msync for every page that a transaction snapshots: a run takes minutes.";
        return Ok(Opened::Missing(why.into()));
    }
    let room: usize = lengths.iter().map(|len| len.next_multiple_of(LINE)).sum();
    let path = place.dir.join("arrays");
    let Some(pool) = Pmem::create(&path, place.medium, room * 3 + (128 << 20), room + LINE)? else {
        return Ok(Opened::Missing(MISSING.into()));
    };
    let mut at = pool.root().wrapping_add(pool.root().align_offset(LINE));
    let mut arrays = Vec::with_capacity(lengths.len());
    for len in lengths {
        arrays.push((at, *len));
        at = at.wrapping_add(len.next_multiple_of(LINE));
    }
    let taken = lengths.iter().map(|len| Touched::new(*len)).collect();
    Ok(Opened::Ready(Box::new(PmemObj { pool, arrays, taken, in_transaction: false, taking: Ok(()) })))
}

impl PmemObj {
    fn commit(&mut self) -> Result<()> {
        self.in_transaction = false;
        let taking = std::mem::replace(&mut self.taking, Ok(()));
        // SAFETY: (2).
        unsafe { self.pool.finish(taking) }
    }
}

impl ArrayBackend for PmemObj {
    fn arrays(&mut self) -> Vec<&mut [u8]> {
        // SAFETY: (1); borrowed with self.
        let array = |(base, len): &(*mut u8, usize)| unsafe { std::slice::from_raw_parts_mut(*base, *len) };
        self.arrays.iter().map(array).collect()
    }

    fn asks_before(&self) -> bool {
        true
    }

    fn before(&mut self, array: usize, bytes: Range<usize>) {
        let (base, len) = self.arrays[array];
        let taken = &mut self.taken[array];
        let pages = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        let mut from = pages.start;
        while from < pages.end {
            let has = |page: usize| taken.has(page);
            let Some(first) = (from..pages.end).find(|page| !has(*page)) else { break };
            let last = (first..pages.end).find(|page| has(*page)).unwrap_or(pages.end);
            let range = first * PAGE..(last * PAGE).min(len);
            taken.add(range.clone());
            // SAFETY: within an array (1); steps are made in a transaction (2).
            let taken = unsafe { self.pool.under_way().add(base.add(range.start), range.len()) };
            if taken.is_err() {
                self.taking = taken;
            }
            from = last;
        }
    }

    fn sync(&mut self, _: &mut [Touched]) -> Result<()> {
        if self.in_transaction {
            self.commit()?;
        } else {
            // The first fill needs no snapshot.
            for (base, len) in &self.arrays {
                // SAFETY: an array (1).
                unsafe { self.pool.persist(*base, *len) };
            }
        }
        self.taken.iter_mut().for_each(Touched::clear);
        self.pool.begin()?;
        self.in_transaction = true;
        Ok(())
    }
}

impl Drop for PmemObj {
    fn drop(&mut self) {
        if self.in_transaction {
            let _ = self.commit();
        }
    }
}
