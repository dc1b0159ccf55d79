use super::Value;
use super::steps::Steps;
use crate::error::Result;
use crate::{Persist, Plain, Tx, TxCell, TxPtr};

/// A list, changed at both ends, and walked.
#[derive(Plain, Persist)]
#[repr(C)]
pub struct TxList<T> {
    first: TxCell<TxPtr<Node<T>>>,
    last: TxCell<TxPtr<Node<T>>>,
}

#[derive(Plain)]
#[repr(C)]
struct Node<T> {
    prev: TxCell<TxPtr<Node<T>>>,
    next: TxCell<TxPtr<Node<T>>>,
    value: TxCell<T>,
}

impl<T: Value> TxList<T> {
    /// Whether it is empty.
    pub fn is_empty(&self, tx: &mut Tx<'_>) -> Result<bool> {
        Ok(tx.read(&self.first)?.is_null())
    }

    /// Prepends a value.
    pub fn push_front(&self, tx: &mut Tx<'_>, value: T) -> Result<()> {
        let first = tx.read(&self.first)?;
        self.link(tx, TxPtr::NULL, first, value)
    }

    /// Appends a value.
    pub fn push_back(&self, tx: &mut Tx<'_>, value: T) -> Result<()> {
        let last = tx.read(&self.last)?;
        self.link(tx, last, TxPtr::NULL, value)
    }

    fn link(&self, tx: &mut Tx<'_>, prev: TxPtr<Node<T>>, next: TxPtr<Node<T>>, value: T) -> Result<()> {
        let node = Node { prev: TxCell::new(prev), next: TxCell::new(next), value: TxCell::new(value) };
        let node = tx.alloc_beside(self, node)?;
        self.join(tx, prev, node)?;
        self.join_back(tx, node, next)
    }

    fn join(&self, tx: &mut Tx<'_>, prev: TxPtr<Node<T>>, next: TxPtr<Node<T>>) -> Result<()> {
        match prev.some() {
            Some(prev) => tx.write(&tx.at(prev)?.next, next),
            None => tx.write(&self.first, next),
        }
    }

    fn join_back(&self, tx: &mut Tx<'_>, prev: TxPtr<Node<T>>, next: TxPtr<Node<T>>) -> Result<()> {
        match next.some() {
            Some(next) => tx.write(&tx.at(next)?.prev, prev),
            None => tx.write(&self.last, prev),
        }
    }

    fn unlink(&self, tx: &mut Tx<'_>, node: TxPtr<Node<T>>) -> Result<T> {
        let Node { prev, next, value } = tx.at(node)?;
        let (prev, next, value) = (tx.read(prev)?, tx.read(next)?, tx.read(value)?);
        tx.free(node)?;
        self.join(tx, prev, next)?;
        self.join_back(tx, prev, next)?;
        Ok(value)
    }

    /// Removes the first value.
    pub fn pop_front(&self, tx: &mut Tx<'_>) -> Result<Option<T>> {
        let first = tx.read(&self.first)?.some();
        first.map(|node| self.unlink(tx, node)).transpose()
    }

    /// Removes the last value.
    pub fn pop_back(&self, tx: &mut Tx<'_>) -> Result<Option<T>> {
        let last = tx.read(&self.last)?.some();
        last.map(|node| self.unlink(tx, node)).transpose()
    }

    /// Calls `each` with every value's cell, in order.
    ///
    /// # Errors
    /// That of `each`, at once; see the [module](super).
    pub fn for_each<'t>(
        &self,
        tx: &mut Tx<'t>,
        mut each: impl FnMut(&mut Tx<'t>, &'t TxCell<T>) -> Result<()>,
    ) -> Result<()> {
        let (mut steps, mut at) = (Steps::of(tx, self)?, tx.read(&self.first)?);
        while let Some(node) = at.some() {
            steps.step()?;
            let node = tx.at(node)?;
            at = tx.read(&node.next)?;
            each(tx, &node.value)?;
        }
        Ok(())
    }

    /// Removes values for which `keep` is false.
    pub fn retain(&self, tx: &mut Tx<'_>, mut keep: impl FnMut(T) -> bool) -> Result<()> {
        let (mut steps, mut at) = (Steps::of(tx, self)?, tx.read(&self.first)?);
        while let Some(node) = at.some() {
            steps.step()?;
            let found = tx.at(node)?;
            at = tx.read(&found.next)?;
            if !keep(tx.read(&found.value)?) {
                self.unlink(tx, node)?;
            }
        }
        Ok(())
    }

    /// All values, in order.
    pub fn to_vec(&self, tx: &mut Tx<'_>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        self.for_each(tx, |tx, value| {
            values.push(tx.read(value)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Removes all values.
    pub fn clear(&self, tx: &mut Tx<'_>) -> Result<()> {
        while self.pop_front(tx)?.is_some() {}
        Ok(())
    }
}
