use super::arena::Heap;
use super::memory::{Outcome, Words};

const VALUE: u64 = 0;
const NEXT: u64 = 1;
const NODE: u64 = 2;

#[derive(Clone, Copy)]
pub struct Queue(pub u64);

impl Queue {
    pub fn push<T: Words>(self, tx: &mut T, heap: Heap, value: u64) -> Outcome<()> {
        let new = heap.alloc(tx, NODE)?;
        tx.set(new + VALUE, value)?;
        tx.set(new + NEXT, 0)?;
        let last = tx.get(self.0 + 1)?;
        tx.set(if last == 0 { self.0 } else { last + NEXT }, new)?;
        tx.set(self.0 + 1, new)
    }

    pub fn pop<T: Words>(self, tx: &mut T, heap: Heap) -> Outcome<Option<u64>> {
        let first = tx.get(self.0)?;
        if first == 0 {
            return Ok(None);
        }
        let (value, next) = (tx.get(first + VALUE)?, tx.get(first + NEXT)?);
        tx.set(self.0, next)?;
        if next == 0 {
            tx.set(self.0 + 1, 0)?;
        }
        heap.free(tx, first, NODE)?;
        Ok(Some(value))
    }
}
