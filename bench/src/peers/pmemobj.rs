//! libpmemobj: records in the root object, changed in transactions with snapshots.

#![allow(unsafe_code)]

use super::pmem::{MISSING, Pmem};
use super::{Change, Opened, Peer, Place, RECORD, first_word, initial};
use crate::Result;

/// Invariant 1: the root object has so many records.
struct PmemObj {
    pmem: Pmem,
    records: u64,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let len = usize::try_from(place.records)? * RECORD;
    let path = place.dir.join("records");
    let Some(pmem) = Pmem::create(&path, place.medium, len * 5 / 4 + (64 << 20), len)? else {
        return Ok(Opened::Missing(MISSING.into()));
    };
    let peer = PmemObj { pmem, records: place.records };
    for record in 0..place.records {
        // SAFETY: a record.
        unsafe { peer.at(record)?.cast::<[u8; RECORD]>().write_unaligned(initial(record)) };
    }
    // SAFETY: the root object.
    unsafe { peer.pmem.persist(peer.pmem.root(), len) };
    Opened::ready(peer)
}

impl PmemObj {
    fn at(&self, record: u64) -> Result<*mut u8> {
        if record >= self.records {
            return Err("no such record".into());
        }
        // SAFETY: within the records (1).
        Ok(unsafe { self.pmem.root().add(record as usize * RECORD) })
    }
}

impl Peer for PmemObj {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        self.pmem.transaction(|transaction| {
            for change in changes {
                let at = self.at(change.record)?;
                // SAFETY: the first word of a record, added before it is stored to.
                unsafe {
                    transaction.add(at, 8)?;
                    at.cast::<u64>().write_unaligned(change.value);
                }
            }
            Ok(())
        })
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        let at = self.at(record)?;
        // SAFETY: a record (1).
        first_word(unsafe { &*at.cast::<[u8; RECORD]>() })
    }
}
