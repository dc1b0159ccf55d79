//! The epochs of a store, and the segments that count in each.

use crate::error::{ReplicateError, Result};
use crate::names::{self, Position};
use crate::patient::Patient;
use crate::records::{Boundary, EpochRecord, decode, is_boundary};

/// All epochs, ascending, from 1.
pub(crate) struct History {
    epochs: Vec<EpochRecord>,
}

impl History {
    /// # Errors
    /// `Missing`, also of an epoch whose segments or lease are there; `Damaged`; the store's.
    pub(crate) fn read(store: Patient<'_>) -> Result<History> {
        let mut seen = None;
        loop {
            let history = History::records(store)?;
            let next = history.epochs.len() as u64 + 1;
            let Some(needs) = left_of(store, next)? else { return Ok(history) };
            let name = names::epoch(next);
            // An owner that began meanwhile has put it: the next list has it.
            if store.find(&name)?.is_none() {
                return Err(ReplicateError::Missing { name, needs });
            }
            if seen == Some(next) {
                return Err(ReplicateError::damaged(&name, "it is there, and no list has it"));
            }
            seen = Some(next);
        }
    }

    fn records(store: Patient<'_>) -> Result<History> {
        let mut epochs: Vec<EpochRecord> = Vec::new();
        let found: Vec<u64> = store.list(names::EPOCHS)?.iter().filter_map(|n| names::number(n)).collect();
        for (number, expected) in found.into_iter().zip(1..) {
            if number != expected {
                let name = names::epoch(expected);
                return Err(ReplicateError::Missing { name, needs: names::epoch(number) });
            }
            let name = names::epoch(number);
            let record: EpochRecord = decode(&store.get(&name, "the store")?, &name)?;
            if record.epoch != number || record.after_epoch != number - 1 {
                return Err(ReplicateError::damaged(&name, "it does not continue the epoch before"));
            }
            epochs.push(record);
        }
        Ok(History { epochs })
    }

    pub(crate) fn last(&self) -> Option<&EpochRecord> {
        self.epochs.last()
    }

    pub(crate) fn all(&self) -> &[EpochRecord] {
        &self.epochs
    }

    /// The segment before, perhaps of an earlier epoch; `None`: there is none.
    pub(crate) fn before(&self, at: Position) -> Option<Position> {
        let mut at = at;
        while at.seq <= 1 {
            let record = self.epochs.iter().find(|record| record.epoch == at.epoch)?;
            at = record.after();
            if at.seq > 0 {
                return Some(at);
            }
        }
        Some(Position { seq: at.seq - 1, ..at })
    }

    /// Last segment of an epoch, and whether the epoch has ended.
    ///
    /// # Errors
    /// `Missing`; the store's.
    pub(crate) fn end(&self, store: Patient<'_>, epoch: u64) -> Result<(Position, bool)> {
        let count = numbers(store, epoch)?.len() as u64;
        let last = Position { epoch, seq: count };
        if let Some(next) = self.epochs.iter().find(|record| record.epoch == epoch + 1) {
            let end = next.after();
            if count < end.seq {
                let name = last.next().name();
                return Err(ReplicateError::Missing { name, needs: names::epoch(next.epoch) });
            }
            return Ok((end, true));
        }
        if count == 0 {
            return Ok((last, false));
        }
        let bytes = store.get(&last.name(), "the epoch")?;
        if !is_boundary(&bytes) {
            return Ok((last, false));
        }
        let _: Boundary = decode(&bytes, &last.name())?;
        Ok((Position { epoch, seq: count - 1 }, true))
    }
}

/// An object of an epoch, but for its record.
fn left_of(store: Patient<'_>, epoch: u64) -> Result<Option<String>> {
    if let Some(segment) = store.list(&names::segments(epoch))?.into_iter().next() {
        return Ok(Some(segment));
    }
    let lease = names::lease(epoch);
    Ok(store.find(&lease)?.map(|_| lease))
}

/// Numbers of an epoch's segments and boundary: 1, 2, ….
///
/// # Errors
/// `Missing`; the store's.
pub(crate) fn numbers(store: Patient<'_>, epoch: u64) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for name in store.list(&names::segments(epoch))? {
        let Some(number) = names::number(&name) else { continue };
        let expected = found.len() as u64 + 1;
        if number != expected {
            let missing = Position { epoch, seq: expected }.name();
            return Err(ReplicateError::Missing { name: missing, needs: name });
        }
        found.push(number);
    }
    Ok(found)
}
