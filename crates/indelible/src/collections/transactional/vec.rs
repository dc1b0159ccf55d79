//! A vector that grows without moving its elements.

use super::Value;
use super::steps::damaged;
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell, TxPtr};

const FIRST: u64 = 8;
const SEGMENTS: usize = 40;

/// A vector in segments: adding a value copies no others.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxVec<T> {
    len: TxCell<u64>,
    segments: [TxCell<TxPtr<TxCell<T>>>; SEGMENTS],
}

fn place(index: u64) -> (usize, u64, u64) {
    let segment = (index / FIRST + 1).ilog2() as usize;
    let len = FIRST << segment;
    (segment, len, index - (len - FIRST))
}

impl<T: Value> TxVec<T> {
    /// Number of values.
    pub fn len(&self, tx: &mut Tx<'_>) -> Result<u64> {
        tx.read(&self.len)
    }

    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(self.len(tx)? == 0)
    }

    fn slot<'t>(&self, tx: &mut Tx<'t>, index: u64) -> Result<Option<&'t TxCell<T>>> {
        let (segment, _, at) = place(index);
        let Some(cell) = self.segments.get(segment) else { return Ok(None) };
        let start = tx.read(cell)?.some();
        start.map(|start| tx.at(start.nth(at))).transpose()
    }

    /// The cell of a value. `None`: there are fewer.
    pub fn cell<'t>(&self, tx: &mut Tx<'t>, index: u64) -> Result<Option<&'t TxCell<T>>> {
        if index >= self.len(tx)? {
            return Ok(None);
        }
        let slot = self.slot(tx, index)?;
        slot.map(Some).ok_or_else(|| damaged("a vector has fewer segments than values"))
    }

    /// A value. `None`: there are fewer.
    pub fn get(&self, tx: &mut Tx<'_>, index: u64) -> Result<Option<T>> {
        let cell = self.cell(tx, index)?;
        cell.map(|cell| tx.read(cell)).transpose()
    }

    /// Changes a value. `false`: there are fewer.
    pub fn set(&self, tx: &mut Tx<'_>, index: u64, value: T) -> Result<bool> {
        match self.cell(tx, index)? {
            Some(cell) => tx.write(cell, value).map(|()| true),
            None => Ok(false),
        }
    }

    /// Appends a value.
    pub fn push(&self, tx: &mut Tx<'_>, value: T) -> Result<()> {
        let len = self.len(tx)?;
        let slot = match self.slot(tx, len)? {
            Some(slot) => slot,
            None => {
                let (segment, count, at) = place(len);
                let cell = self.segments.get(segment).ok_or_else(|| damaged("a vector has no end"))?;
                let start = tx.alloc_many_beside(self, count as usize)?;
                tx.write(cell, start)?;
                tx.at(start.nth(at))?
            }
        };
        tx.write(slot, value)?;
        tx.write(&self.len, len + 1)
    }

    /// Removes the last value; the room stays.
    pub fn pop(&self, tx: &mut Tx<'_>) -> Result<Option<T>> {
        let Some(last) = self.len(tx)?.checked_sub(1) else { return Ok(None) };
        let value = self.get(tx, last)?;
        tx.write(&self.len, last)?;
        Ok(value)
    }

    /// Removes a value; the last takes its place. `None`: there are fewer.
    pub fn swap_remove(&self, tx: &mut Tx<'_>, index: u64) -> Result<Option<T>> {
        let Some(taken) = self.get(tx, index)? else { return Ok(None) };
        if let Some(last) = self.pop(tx)? {
            self.set(tx, index, last)?;
        }
        Ok(Some(taken))
    }

    /// All values.
    pub fn to_vec(&self, tx: &mut Tx<'_>) -> Result<Vec<T>> {
        let (len, mut values) = (self.len(tx)?, Vec::new());
        for index in 0..len {
            values.extend(self.get(tx, index)?);
        }
        Ok(values)
    }

    /// Removes all values, and frees their room.
    pub fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        for cell in &self.segments {
            if let Some(segment) = tx.read(cell)?.some() {
                tx.free(segment)?;
                tx.write(cell, TxPtr::NULL)?;
            }
        }
        tx.write(&self.len, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other() {
        let mut next = (0, 0);
        for index in 0..10_000 {
            let (segment, len, at) = place(index);
            assert_eq!((segment, at), next, "{index}");
            next = if at + 1 == len { (segment + 1, 0) } else { (segment, at + 1) };
        }
        assert_eq!(place(0), (0, 8, 0));
        assert_eq!(place(8), (1, 16, 0));
        assert!(place(u64::MAX - 8).0 >= SEGMENTS);
    }
}
