//! Bounds of walks: a list that damage made a ring ends as an error.

use crate::error::{Error, HeapError, Result};
use crate::transaction::Tx;

pub(super) struct Steps(u64);

impl Steps {
    #[inline]
    pub(super) fn of<C>(tx: &Tx<'_>, cell: &C) -> Result<Steps> {
        tx.most_blocks(cell).map(Steps)
    }

    #[inline]
    pub(super) fn step(&mut self) -> Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(endless)?;
        Ok(())
    }
}

#[cold]
fn endless() -> Error {
    damaged("a walk through a collection does not end")
}

#[cold]
pub(super) fn damaged(what: &'static str) -> Error {
    Error::new("use a collection", HeapError::Damaged { offset: 0, what })
}
