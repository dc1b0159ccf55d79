use super::arena::Heap;
use super::memory::{Outcome, Words};

const KEY: u64 = 0;
const VALUE: u64 = 1;
const NEXT: u64 = 2;
const NODE: u64 = 3;

#[derive(Clone, Copy)]
pub struct List(pub u64);

impl List {
    pub fn insert<T: Words>(self, tx: &mut T, heap: Heap, key: u64, value: u64) -> Outcome<bool> {
        let mut link = self.0;
        let mut node = tx.get(link)?;
        while node != 0 {
            let found = tx.get(node + KEY)?;
            if found == key {
                return Ok(false);
            }
            if found > key {
                break;
            }
            link = node + NEXT;
            node = tx.get(link)?;
        }
        let new = heap.alloc(tx, NODE)?;
        tx.set(new + KEY, key)?;
        tx.set(new + VALUE, value)?;
        tx.set(new + NEXT, node)?;
        tx.set(link, new)?;
        Ok(true)
    }

    pub fn find<T: Words>(self, tx: &mut T, key: u64) -> Outcome<Option<u64>> {
        let mut node = tx.get(self.0)?;
        while node != 0 {
            let found = tx.get(node + KEY)?;
            if found >= key {
                return if found == key { tx.get(node + VALUE).map(Some) } else { Ok(None) };
            }
            node = tx.get(node + NEXT)?;
        }
        Ok(None)
    }

    pub fn pop<T: Words>(self, tx: &mut T, heap: Heap) -> Outcome<Option<(u64, u64)>> {
        let node = tx.get(self.0)?;
        if node == 0 {
            return Ok(None);
        }
        let first = (tx.get(node + KEY)?, tx.get(node + VALUE)?);
        let next = tx.get(node + NEXT)?;
        tx.set(self.0, next)?;
        heap.free(tx, node, NODE)?;
        Ok(Some(first))
    }

    pub fn entries<T: Words>(self, tx: &mut T) -> Outcome<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        let mut node = tx.get(self.0)?;
        while node != 0 {
            all.push((tx.get(node + KEY)?, tx.get(node + VALUE)?));
            node = tx.get(node + NEXT)?;
        }
        Ok(all)
    }

    pub fn clear<T: Words>(self, tx: &mut T, heap: Heap) -> Outcome<()> {
        let mut node = tx.get(self.0)?;
        while node != 0 {
            let next = tx.get(node + NEXT)?;
            heap.free(tx, node, NODE)?;
            node = next;
        }
        tx.set(self.0, 0)
    }
}
