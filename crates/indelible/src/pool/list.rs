//! The objects of a pool, one after the other.

use super::{Pool, Stat};
use crate::error::Result;
use indelible_store::error::StoreError;
use indelible_store::store::Status;
use indelible_store::table::Located;

/// See [`Pool::list`].
pub struct List {
    pool: Pool,
    /// Entries not yet read, in reverse; `None`: not known yet.
    entries: Option<Vec<u64>>,
    piece: std::vec::IntoIter<Result<(Located, Status), StoreError>>,
}

impl List {
    pub(super) fn of(pool: Pool) -> List {
        List { pool, entries: None, piece: Vec::new().into_iter() }
    }

    /// Reads some more objects.
    fn refill(&mut self) -> Result<(), StoreError> {
        const PIECE: usize = 1024;
        let store = &self.pool.inner.store;
        let entries = match &mut self.entries {
            Some(entries) => entries,
            none => {
                let mut all = store.entries()?;
                all.reverse();
                none.insert(all)
            }
        };
        let mut piece = entries.split_off(entries.len().saturating_sub(PIECE));
        piece.reverse();
        self.piece = store.statuses(&piece)?.into_iter();
        Ok(())
    }
}

impl Iterator for List {
    type Item = Result<Stat>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.piece.next() {
                Some(Ok((object, status))) => return Some(Ok(Stat::of(&object.entry, &status))),
                Some(Err(cause)) => return Some(Err(self.pool.error("list", cause))),
                None if self.entries.as_ref().is_some_and(Vec::is_empty) => return None,
                None => {}
            }
            if let Err(cause) = self.refill() {
                self.entries = Some(Vec::new());
                return Some(Err(self.pool.error("list", cause)));
            }
        }
    }
}
