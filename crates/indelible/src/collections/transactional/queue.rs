use super::Value;
use super::steps::Steps;
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell, TxPtr};

/// A first-in, first-out queue.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxQueue<T> {
    first: TxCell<TxPtr<Node<T>>>,
    apart: [TxCell<u64>; 7],
    last: TxCell<TxPtr<Node<T>>>,
}

#[derive(Plain)]
#[repr(C)]
struct Node<T> {
    next: TxCell<TxPtr<Node<T>>>,
    value: TxCell<T>,
}

impl<T: Value> TxQueue<T> {
    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(tx.read(&self.first)?.is_null())
    }

    /// Adds a value.
    pub fn push(&self, tx: &mut Tx<'_>, value: T) -> Result<()> {
        let node = Node { next: TxCell::new(TxPtr::NULL), value: TxCell::new(value) };
        let node = tx.alloc_beside(self, node)?;
        match tx.read(&self.last)?.some() {
            Some(last) => tx.write(&tx.at(last)?.next, node)?,
            None => tx.write(&self.first, node)?,
        }
        tx.write(&self.last, node)
    }

    /// Removes the oldest value.
    pub fn pop(&self, tx: &mut Tx<'_>) -> Result<Option<T>> {
        let Some(first) = tx.read(&self.first)?.some() else { return Ok(None) };
        let Node { next, value } = tx.at(first)?;
        let (next, value) = (tx.read(next)?, tx.read(value)?);
        tx.free(first)?;
        tx.write(&self.first, next)?;
        if next.is_null() {
            tx.write(&self.last, TxPtr::NULL)?;
        }
        Ok(Some(value))
    }

    /// The oldest value.
    pub fn peek(&self, tx: &mut Tx<'_>) -> Result<Option<T>> {
        let Some(first) = tx.read(&self.first)?.some() else { return Ok(None) };
        tx.read(&tx.at(first)?.value).map(Some)
    }

    /// All values, oldest first.
    pub fn to_vec(&self, tx: &mut Tx<'_>) -> Result<Vec<T>> {
        let (mut steps, mut at) = (Steps::of(tx, self)?, tx.read(&self.first)?);
        let mut values = Vec::new();
        while let Some(node) = at.some() {
            steps.step()?;
            let node = tx.at(node)?;
            values.push(tx.read(&node.value)?);
            at = tx.read(&node.next)?;
        }
        Ok(values)
    }

    /// Removes all values.
    pub fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        while self.pop(tx)?.is_some() {}
        Ok(())
    }
}
