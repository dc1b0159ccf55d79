//! An ordered map of numbers: a treap with hashes of keys as priorities, so that contents determine
//! the shape.

use super::arena::Heap;
use super::memory::{Outcome, Words};

const KEY: u64 = 0;
const VALUE: u64 = 1;
const LEFT: u64 = 2;
const RIGHT: u64 = 3;
const NODE: u64 = 4;

#[derive(Clone, Copy)]
pub struct Map(pub u64);

fn rank(key: u64) -> (u64, u64) {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9), key)
}

impl Map {
    pub fn find<T: Words>(self, tx: &mut T, key: u64) -> Outcome<Option<u64>> {
        let mut node = tx.get(self.0)?;
        while node != 0 {
            let found = tx.get(node + KEY)?;
            if found == key {
                return Ok(Some(node + VALUE));
            }
            node = tx.get(node + if key < found { LEFT } else { RIGHT })?;
        }
        Ok(None)
    }

    pub fn insert<T: Words>(self, tx: &mut T, heap: Heap, key: u64, value: u64) -> Outcome<bool> {
        let mut link = self.0;
        let mut node = tx.get(link)?;
        while node != 0 {
            let found = tx.get(node + KEY)?;
            if found == key {
                return Ok(false);
            }
            if rank(found) < rank(key) {
                break;
            }
            link = node + if key < found { LEFT } else { RIGHT };
            node = tx.get(link)?;
        }
        let new = heap.alloc(tx, NODE)?;
        tx.set(new + KEY, key)?;
        tx.set(new + VALUE, value)?;
        let (mut smaller, mut larger) = (new + LEFT, new + RIGHT);
        while node != 0 {
            if tx.get(node + KEY)? < key {
                tx.set(smaller, node)?;
                smaller = node + RIGHT;
                node = tx.get(smaller)?;
            } else {
                tx.set(larger, node)?;
                larger = node + LEFT;
                node = tx.get(larger)?;
            }
        }
        tx.set(smaller, 0)?;
        tx.set(larger, 0)?;
        tx.set(link, new)?;
        Ok(true)
    }

    pub fn remove<T: Words>(self, tx: &mut T, heap: Heap, key: u64) -> Outcome<Option<u64>> {
        let mut link = self.0;
        let mut node = tx.get(link)?;
        loop {
            if node == 0 {
                return Ok(None);
            }
            let found = tx.get(node + KEY)?;
            if found == key {
                break;
            }
            link = node + if key < found { LEFT } else { RIGHT };
            node = tx.get(link)?;
        }
        let value = tx.get(node + VALUE)?;
        let (mut left, mut right) = (tx.get(node + LEFT)?, tx.get(node + RIGHT)?);
        while left != 0 && right != 0 {
            if rank(tx.get(left + KEY)?) > rank(tx.get(right + KEY)?) {
                tx.set(link, left)?;
                link = left + RIGHT;
                left = tx.get(link)?;
            } else {
                tx.set(link, right)?;
                link = right + LEFT;
                right = tx.get(link)?;
            }
        }
        tx.set(link, left.max(right))?;
        heap.free(tx, node, NODE)?;
        Ok(Some(value))
    }

    pub fn entries<T: Words>(self, tx: &mut T) -> Outcome<Vec<(u64, u64)>> {
        let (mut all, mut above) = (Vec::new(), Vec::new());
        let mut node = tx.get(self.0)?;
        loop {
            while node != 0 {
                above.push(node);
                node = tx.get(node + LEFT)?;
            }
            let Some(next) = above.pop() else { return Ok(all) };
            all.push((tx.get(next + KEY)?, tx.get(next + VALUE)?));
            node = tx.get(next + RIGHT)?;
        }
    }
}
