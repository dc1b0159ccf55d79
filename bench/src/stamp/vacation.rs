//! vacation: clients reserve cars, flights and rooms. Medium transactions on ordered maps.

use super::arena::{Arena, Heap};
use super::list::List;
use super::map::Map;
use super::memory::{LINE, Outcome, WORDS, Words, Worker, ensure};
use super::{Kernel, Part};
use crate::pattern::Random;
use std::collections::BTreeMap;

const KINDS: u64 = 3;
const TABLES: [Map; KINDS as usize] = [Map(LINE), Map(2 * LINE), Map(3 * LINE)];
/// Customers, each with a word that names the first reservation.
const CUSTOMERS: Map = Map(4 * LINE);
const ARENA: u64 = 5 * LINE;
/// A kind's record: units used, free, in all; price.
const USED: u64 = 0;
const FREE: u64 = 1;
const TOTAL: u64 = 2;
const PRICE: u64 = 3;
const RECORD: u64 = 4;
const UNITS: u64 = 100;

/// STAMP's "low" contention: 2 queries per task on 90 % of the relations; 98 % of the tasks are
/// reservations.
const QUERIES: u64 = 2;
const OF_RELATIONS: u64 = 90;
const RESERVATIONS: u64 = 98;

pub struct Vacation {
    relations: u64,
    tasks: usize,
}

fn price(random: &mut Random) -> u64 {
    random.below(5) * 10 + 50
}

fn reservation(kind: u64, id: u64) -> u64 {
    kind << 32 | id
}

impl Vacation {
    fn add<T: Words>(tx: &mut T, heap: Heap, kind: u64, id: u64, price: u64) -> Outcome<bool> {
        let table = TABLES[kind as usize];
        match table.find(tx, id)? {
            None => {
                let record = heap.alloc(tx, RECORD)?;
                for (at, value) in [(USED, 0), (FREE, UNITS), (TOTAL, UNITS), (PRICE, price)] {
                    tx.set(record + at, value)?;
                }
                table.insert(tx, heap, id, record)
            }
            Some(at) => {
                let record = tx.get(at)?;
                tx.add(record + FREE, UNITS)?;
                tx.add(record + TOTAL, UNITS)?;
                tx.set(record + PRICE, price)?;
                Ok(true)
            }
        }
    }

    /// Removes free units; the record goes with the last.
    fn take_out<T: Words>(tx: &mut T, heap: Heap, kind: u64, id: u64) -> Outcome<()> {
        let table = TABLES[kind as usize];
        let Some(at) = table.find(tx, id)? else { return Ok(()) };
        let record = tx.get(at)?;
        if tx.get(record + FREE)? < UNITS {
            return Ok(());
        }
        tx.add(record + FREE, UNITS.wrapping_neg())?;
        if tx.add(record + TOTAL, UNITS.wrapping_neg())? == 0 {
            table.remove(tx, heap, id)?;
            heap.free(tx, record, RECORD)?;
        }
        Ok(())
    }

    fn reserve<T: Words>(tx: &mut T, heap: Heap, customer: u64, queries: &[(u64, u64)]) -> Outcome<()> {
        let mut best = [(0, 0); KINDS as usize];
        for &(kind, id) in queries {
            let Some(at) = TABLES[kind as usize].find(tx, id)? else { continue };
            let record = tx.get(at)?;
            let price = tx.get(record + PRICE)?;
            if tx.get(record + FREE)? > 0 && price > best[kind as usize].0 {
                best[kind as usize] = (price, id);
            }
        }
        if best.iter().all(|(price, _)| *price == 0) {
            return Ok(());
        }
        let list = match CUSTOMERS.find(tx, customer)? {
            Some(at) => List(tx.get(at)?),
            None => {
                let list = heap.alloc(tx, 1)?;
                tx.set(list, 0)?;
                CUSTOMERS.insert(tx, heap, customer, list)?;
                List(list)
            }
        };
        for (kind, (price, id)) in (0..).zip(best).filter(|(_, (price, _))| *price > 0) {
            let Some(at) = TABLES[kind as usize].find(tx, id)? else { continue };
            let record = tx.get(at)?;
            if list.insert(tx, heap, reservation(kind, id), price)? {
                tx.add(record + FREE, 1_u64.wrapping_neg())?;
                tx.add(record + USED, 1)?;
            }
        }
        Ok(())
    }

    fn leave<T: Words>(tx: &mut T, heap: Heap, customer: u64) -> Outcome<()> {
        let Some(list) = CUSTOMERS.remove(tx, heap, customer)? else { return Ok(()) };
        for (reserved, _) in List(list).entries(tx)? {
            let table = TABLES[(reserved >> 32) as usize];
            let Some(at) = table.find(tx, reserved & 0xffff_ffff)? else { continue };
            let record = tx.get(at)?;
            tx.add(record + FREE, 1)?;
            tx.add(record + USED, 1_u64.wrapping_neg())?;
        }
        List(list).clear(tx, heap)?;
        heap.free(tx, list, 1)
    }
}

impl Kernel for Vacation {
    const NAME: &'static str = "vacation";

    fn new(size: usize) -> Self {
        Vacation { relations: 64 * size as u64, tasks: 128 * size }
    }

    fn load<W: Worker>(&self, worker: &mut W, threads: usize) -> Outcome<()> {
        let arena = Arena::new(ARENA, WORDS as u64, threads);
        arena.load(worker)?;
        let mut random = Random::new(1);
        for kind in 0..KINDS {
            for id in 0..self.relations {
                let price = price(&mut random);
                worker.atomically(|tx| Vacation::add(tx, arena.loader(), kind, id, price))?;
            }
        }
        Ok(())
    }

    fn work<W: Worker>(&self, worker: &mut W, part: &Part<'_>) -> Outcome<()> {
        let heap = Arena::new(ARENA, WORDS as u64, part.threads).heap(part.number);
        let (mut random, queried) =
            (Random::new(2 + part.number as u64), self.relations * OF_RELATIONS / 100);
        for _ in part.share(self.tasks) {
            let (action, customer) = (random.below(100), random.below(self.relations));
            if action < RESERVATIONS {
                let mut query = || (random.below(KINDS), random.below(queried));
                let queries: [_; QUERIES as usize] = std::array::from_fn(|_| query());
                worker.atomically(|tx| Vacation::reserve(tx, heap, customer, &queries))?;
            } else if action.is_multiple_of(2) {
                worker.atomically(|tx| Vacation::leave(tx, heap, customer))?;
            } else {
                let mut update = || (random.below(KINDS), random.below(queried), random.below(2));
                let updates: [_; QUERIES as usize] = std::array::from_fn(|_| update());
                let price = price(&mut random);
                worker.atomically(|tx| {
                    for (kind, id, adds) in updates {
                        match adds {
                            0 => Vacation::take_out(tx, heap, kind, id)?,
                            _ => Vacation::add(tx, heap, kind, id, price).map(drop)?,
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn check<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        worker.atomically(|tx| {
            let mut reserved = BTreeMap::new();
            for (_, list) in CUSTOMERS.entries(tx)? {
                for (reservation, _) in List(list).entries(tx)? {
                    *reserved.entry(reservation).or_insert(0_u64) += 1;
                }
            }
            ensure(!reserved.is_empty(), || "vacation: nothing is reserved".into())?;
            for (kind, table) in (0..).zip(TABLES) {
                for (id, record) in table.entries(tx)? {
                    let [used, free, total] = [USED, FREE, TOTAL].map(|at| tx.get(record + at));
                    let (used, free, total) = (used?, free?, total?);
                    let by = reserved.remove(&reservation(kind, id)).unwrap_or(0);
                    ensure(used == by && used + free == total, || {
                        format!("vacation: kind {kind}, {id}: {used} used and {free} free of {total}, {by} reserved")
                    })?;
                }
            }
            ensure(reserved.is_empty(), || format!("vacation: reserved, and not there: {reserved:?}"))
        })
    }
}
