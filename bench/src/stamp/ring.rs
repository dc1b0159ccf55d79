//! The paper's list (S1.21): circular and doubly linked, changed in transactions that allocate and
//! free.

use super::arena::{Arena, Heap};
use super::memory::{LINE, Outcome, WORDS, Words, Worker};

const END: u64 = LINE;
const ARENA: u64 = 2 * LINE;
const BEFORE: u64 = 0;
const NEXT: u64 = 1;
const PAYLOAD: u64 = 2;

#[derive(Clone, Copy)]
pub struct Ring {
    payload: u64,
    heap: Heap,
}

impl Ring {
    pub fn new(payload: u64) -> Self {
        Ring { payload, heap: Ring::arena().heap(0) }
    }

    fn arena() -> Arena {
        Arena::new(ARENA, WORDS as u64, 1)
    }

    pub fn load<W: Worker>(&self, worker: &mut W) -> Outcome<()> {
        Ring::arena().load(worker)?;
        worker.write(END, &[END, END])
    }

    pub fn push<W: Worker>(&self, worker: &mut W, value: u64) -> Outcome<()> {
        worker.atomically(|tx| {
            let new = self.heap.alloc(tx, PAYLOAD + self.payload)?;
            let last = tx.get(END + BEFORE)?;
            tx.set(new + BEFORE, last)?;
            tx.set(new + NEXT, END)?;
            (PAYLOAD..PAYLOAD + self.payload).try_for_each(|at| tx.set(new + at, value))?;
            tx.set(last + NEXT, new)?;
            tx.set(END + BEFORE, new)
        })
    }

    pub fn pop<W: Worker>(&self, worker: &mut W) -> Outcome<Option<u64>> {
        worker.atomically(|tx| {
            let first = tx.get(END + NEXT)?;
            if first == END {
                return Ok(None);
            }
            let (next, value) = (tx.get(first + NEXT)?, tx.get(first + PAYLOAD)?);
            tx.set(END + NEXT, next)?;
            tx.set(next + BEFORE, END)?;
            self.heap.free(tx, first, PAYLOAD + self.payload)?;
            Ok(Some(value))
        })
    }

    pub fn sum<W: Worker>(&self, worker: &mut W) -> Outcome<u64> {
        worker.atomically(|tx| {
            let (mut at, mut sum) = (tx.get(END + NEXT)?, 0_u64);
            while at != END {
                sum = sum.wrapping_add(tx.get(at + PAYLOAD)?);
                at = tx.get(at + NEXT)?;
            }
            Ok(sum)
        })
    }

    pub fn change<W: Worker>(&self, worker: &mut W, more: u64) -> Outcome<()> {
        worker.atomically(|tx| {
            let mut at = tx.get(END + NEXT)?;
            while at != END {
                tx.add(at + PAYLOAD, more)?;
                at = tx.get(at + NEXT)?;
            }
            Ok(())
        })
    }
}
