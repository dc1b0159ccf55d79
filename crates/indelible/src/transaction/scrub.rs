//! Scrubbing: transactions read all words of an object with check words, and repair damaged ones.

use super::attached::Attached;
use super::heap::TxHeap;
use super::home::Transactional;
use super::object::TxObject;
use super::run::transaction;
use super::words::ObjectWords;
use crate::error::{Cause, Error, Result, TransactionError};
use crate::heap::words::Words;
use crate::pool::Pool;
use indelible_store::format::entry::FLAG_ECC;
use std::cell::Cell;
use std::ops::Range;

const PIECE: usize = 4096;

/// The outcome of a scrub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scrubbed {
    /// Words read.
    pub words: u64,
    /// Words durably repaired.
    pub repaired: u64,
    /// Offsets, in the program's bytes, of words damaged beyond repair. A transaction that reads
    /// one fails; storing to one makes it valid.
    pub lost: Vec<u64>,
}

impl Pool {
    /// Reads all words of an unattached object with [check words](crate::CreateOptions::ecc), and
    /// repairs damaged ones durably. `progress` gets bytes done and all.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// use indelible::{CreateOptions, TxCell};
    ///
    /// pool.create_with("ledger", &CreateOptions::new(4096).ecc(true))?;
    /// let ledger = pool.attach_transactional::<[TxCell<u64>; 512]>("ledger")?;
    /// ledger.transaction(|tx| tx.write(&ledger.root()[7], 100))?;
    /// ledger.detach()?;
    /// let found = pool.scrub("ledger", b"", &mut |_, _| {})?;
    /// assert_eq!((found.words, found.repaired, found.lost.len()), (512, 0, 0));
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ClassMismatch` for an object without check words. As for
    /// [`attach_transactional`](Pool::attach_transactional) and
    /// [`transaction`](crate::transaction()): earlier repairs stay. Words beyond repair are no
    /// error.
    pub fn scrub(&self, name: &str, key: &[u8], progress: &mut dyn FnMut(u64, u64)) -> Result<Scrubbed> {
        let inner = self.inner();
        let found = inner.alive().and_then(|()| Ok(inner.store.find(name)?));
        if !self.about("scrub", name, found)?.entry.has(FLAG_ECC) {
            return self.about("scrub", name, Err(TransactionError::Unchecked.into()));
        }
        let object = self.attach_transactional_with_key::<[crate::TxCell<u64>; 1]>(name, key)?;
        let found = object.scrub(progress)?;
        object.detach()?;
        Ok(found)
    }
}

impl<T: crate::Plain> TxObject<T> {
    /// As [`Pool::scrub`], of an attached object's words in memory, beside other transactions.
    pub fn scrub(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Scrubbed> {
        scrub(self, progress)
    }
}

impl TxHeap {
    /// As [`TxObject::scrub`].
    pub fn scrub(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Scrubbed> {
        scrub(self, progress)
    }
}

fn scrub(object: &dyn Transactional, progress: &mut dyn FnMut(u64, u64)) -> Result<Scrubbed> {
    let attached = object.attached();
    if attached.pairs().is_none() {
        return Err(attached.error("scrub", TransactionError::Unchecked));
    }
    let (mut found, len) = (Scrubbed::default(), attached.size());
    for from in (0..len).step_by(PIECE) {
        let to = (from + PIECE).min(len);
        piece(object, attached, from..to, &mut found)?;
        progress(to as u64, len as u64);
    }
    found.words = (len / 8) as u64;
    attached.psync()?;
    Ok(found)
}

fn piece(
    object: &dyn Transactional,
    attached: &Attached,
    range: Range<usize>,
    found: &mut Scrubbed,
) -> Result<()> {
    let mut from = range.start;
    while from < range.end {
        let lost = Cell::new(None);
        let read = transaction(&[object], |tx| {
            let load = |words: &mut ObjectWords<'_, '_>| {
                (from..range.end).step_by(8).try_for_each(|offset| words.load(offset as u64).map(drop))
            };
            let loaded = ObjectWords::of(&mut tx.running, &mut tx.conflicted, tx.generation, attached)
                .and_then(|mut words| load(&mut words));
            lost.set(tx.lost_offset());
            loaded.map_err(|cause: Cause| attached.error("scrub", cause))?;
            let changed = tx.running.writes().bytes() / 8;
            Ok::<_, Error>(changed as u64)
        });
        match (read, lost.get()) {
            (Ok(repaired), _) => {
                found.repaired += repaired;
                return Ok(());
            }
            (Err(_), Some(offset)) => {
                piece(object, attached, from..offset, found)?;
                found.lost.push(offset as u64);
                from = offset + 8;
            }
            (Err(error), None) => return Err(error),
        }
    }
    Ok(())
}
