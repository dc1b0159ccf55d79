//! A key-value store like memcached: get, set and delete under a Zipf distribution, with room for
//! some keys.
//!
//! Keys are spread over shards with hash chains and a queue by arrival. A full shard evicts the
//! first of its queue that was unused since the last look.

use super::arena::{Arena, Heap};
use super::memory::{LINE, Outcome, WORDS, Words, Worker, ensure};
use super::{Kernel, Part};
use crate::pattern::Random;

const SHARDS: u64 = 16;
/// A shard: number of items, first and last of the queue.
const SHARD: u64 = LINE;
const COUNT: u64 = 0;
const FIRST: u64 = 1;
const LAST: u64 = 2;
const CHAINS: u64 = LINE + SHARDS * SHARD;
const KEY: u64 = 0;
const CHAIN: u64 = 1;
const BEFORE: u64 = 2;
const NEXT: u64 = 3;
const USED: u64 = 4;
const VALUE: u64 = 5;
const LENGTH: u64 = 8;
const ITEM: u64 = VALUE + LENGTH;
/// Percentages of get and set; the others delete.
const GETS: u64 = 90;
const SETS: u64 = 9;
const ROOM: u64 = 50;

pub struct Store {
    keys: u64,
    operations: usize,
    shares: Vec<u64>,
}

fn value(key: u64, version: u64, nth: u64) -> u64 {
    (key << 32 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(nth as u32)
}

impl Store {
    fn shard(key: u64) -> u64 {
        LINE + key.wrapping_mul(0xbf58_476d_1ce4_e5b9) % SHARDS * SHARD
    }

    fn chain(&self, key: u64) -> u64 {
        CHAINS + (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.keys
    }

    fn room(&self) -> u64 {
        self.keys * ROOM / 100 / SHARDS
    }

    fn arena(&self, threads: usize) -> Arena {
        Arena::new(CHAINS + self.keys, WORDS as u64, threads)
    }

    fn find<T: Words>(&self, tx: &mut T, key: u64) -> Outcome<(u64, u64)> {
        let mut link = self.chain(key);
        let mut item = tx.get(link)?;
        while item != 0 && tx.get(item + KEY)? != key {
            link = item + CHAIN;
            item = tx.get(link)?;
        }
        Ok((link, item))
    }

    fn enqueue<T: Words>(tx: &mut T, shard: u64, item: u64) -> Outcome<()> {
        let last = tx.get(shard + LAST)?;
        tx.set(item + BEFORE, last)?;
        tx.set(item + NEXT, 0)?;
        tx.set(if last == 0 { shard + FIRST } else { last + NEXT }, item)?;
        tx.set(shard + LAST, item)
    }

    fn dequeue<T: Words>(tx: &mut T, shard: u64, item: u64) -> Outcome<()> {
        let (before, next) = (tx.get(item + BEFORE)?, tx.get(item + NEXT)?);
        tx.set(if before == 0 { shard + FIRST } else { before + NEXT }, next)?;
        tx.set(if next == 0 { shard + LAST } else { next + BEFORE }, before)
    }

    fn get<T: Words>(&self, tx: &mut T, key: u64) -> Outcome<Option<[u64; LENGTH as usize]>> {
        let (_, item) = self.find(tx, key)?;
        if item == 0 {
            return Ok(None);
        }
        if tx.get(item + USED)? == 0 {
            tx.set(item + USED, 1)?;
        }
        let mut value = [0; LENGTH as usize];
        for (word, at) in value.iter_mut().zip(item + VALUE..) {
            *word = tx.get(at)?;
        }
        Ok(Some(value))
    }

    fn set<T: Words>(&self, tx: &mut T, heap: Heap, key: u64, version: u64) -> Outcome<()> {
        let (link, mut item) = self.find(tx, key)?;
        if item == 0 {
            let shard = Store::shard(key);
            item = heap.alloc(tx, ITEM)?;
            // The older of two unused items goes, never the new one.
            for (at, value) in [(KEY, key), (CHAIN, 0), (USED, 1)] {
                tx.set(item + at, value)?;
            }
            tx.set(link, item)?;
            Store::enqueue(tx, shard, item)?;
            if tx.add(shard + COUNT, 1)? > self.room() {
                self.evict(tx, heap, shard)?;
            }
        }
        (0..LENGTH).try_for_each(|nth| tx.set(item + VALUE + nth, value(key, version, nth)))
    }

    fn evict<T: Words>(&self, tx: &mut T, heap: Heap, shard: u64) -> Outcome<()> {
        loop {
            let first = tx.get(shard + FIRST)?;
            if tx.get(first + USED)? == 0 {
                let key = tx.get(first + KEY)?;
                return self.delete(tx, heap, key);
            }
            tx.set(first + USED, 0)?;
            Store::dequeue(tx, shard, first)?;
            Store::enqueue(tx, shard, first)?;
        }
    }

    fn delete<T: Words>(&self, tx: &mut T, heap: Heap, key: u64) -> Outcome<()> {
        let (link, item) = self.find(tx, key)?;
        if item == 0 {
            return Ok(());
        }
        let (next, shard) = (tx.get(item + CHAIN)?, Store::shard(key));
        tx.set(link, next)?;
        Store::dequeue(tx, shard, item)?;
        tx.add(shard + COUNT, 1_u64.wrapping_neg())?;
        heap.free(tx, item, ITEM)
    }

    fn is_whole(key: u64, found: &[u64]) -> bool {
        let version = found[0].wrapping_mul(INVERSE) ^ key << 32;
        version >> 32 == 0 && (0..).zip(found).all(|(nth, word)| *word == value(key, version, nth))
    }

    fn key(&self, random: &mut Random) -> u64 {
        let at = random.below(self.shares.last().copied().unwrap_or(1));
        self.shares.partition_point(|share| *share <= at) as u64
    }
}

const INVERSE: u64 = inverse(0x9e37_79b9_7f4a_7c15);

const fn inverse(odd: u64) -> u64 {
    let (mut inverse, mut step) = (odd, 0);
    while step < 6 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

impl Kernel for Store {
    const NAME: &'static str = "store";

    fn new(size: usize) -> Self {
        let keys = 64 * size as u64;
        let share = |total: &mut f64, rank: u64| {
            *total += 1e9 / (rank + 1) as f64;
            Some(*total as u64)
        };
        Store { keys, operations: 512 * size, shares: (0..keys).scan(0.0, share).collect() }
    }

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()> {
        self.arena(threads).load(worker)
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let (heap, mut random) =
            (self.arena(part.threads).heap(part.number), Random::new(1 + part.number as u64));
        for number in part.share(self.operations) {
            let (what, key) = (random.below(100), self.key(&mut random));
            if what < GETS {
                match worker.atomically(|tx| self.get(tx, key))? {
                    Some(found) => {
                        ensure(Store::is_whole(key, &found), || format!("store: {key} has {found:?}"))?
                    }
                    None => worker.atomically(|tx| self.set(tx, heap, key, number as u64))?,
                }
            } else if what < GETS + SETS {
                worker.atomically(|tx| self.set(tx, heap, key, number as u64))?;
            } else {
                worker.atomically(|tx| self.delete(tx, heap, key))?;
            }
        }
        Ok(())
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        worker.atomically(|tx| {
            let mut all = 0;
            for shard in (0..SHARDS).map(|shard| LINE + shard * SHARD) {
                let (mut item, mut before, mut count) = (tx.get(shard + FIRST)?, 0, 0);
                while item != 0 {
                    let key = tx.get(item + KEY)?;
                    let value =
                        (0..LENGTH).map(|nth| tx.get(item + VALUE + nth)).collect::<Outcome<Vec<u64>>>()?;
                    let found = self.find(tx, key)?.1;
                    let right =
                        found == item && Store::shard(key) == shard && tx.get(item + BEFORE)? == before;
                    ensure(right && Store::is_whole(key, &value), || format!("store: {key} has {value:?}"))?;
                    (before, item, count) = (item, tx.get(item + NEXT)?, count + 1);
                }
                let (last, said) = (tx.get(shard + LAST)?, tx.get(shard + COUNT)?);
                ensure(last == before && said == count && count <= self.room(), || {
                    format!("store: {count} items in a shard that says {said}")
                })?;
                all += count;
            }
            let mut chained = 0;
            for chain in 0..self.keys {
                let mut item = tx.get(CHAINS + chain)?;
                while item != 0 {
                    (item, chained) = (tx.get(item + CHAIN)?, chained + 1);
                }
            }
            ensure(all == chained && all > 0, || format!("store: {all} items in queues, {chained} in chains"))
        })
    }
}
