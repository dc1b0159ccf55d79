//! A mapped file changed in place and flushed: no crash consistency (S0.30, NCC).

use super::{Change, Opened, Peer, Place, RECORD, initial};
use crate::Result;
use crate::environment::Medium;
use crate::mapped::Mapped;

struct InPlace(Mapped);

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let len = usize::try_from(place.records)? * RECORD;
    let mut mapped = Mapped::create(&place.dir.join("records"), len, place.medium == Medium::Memory)?;
    for (number, record) in mapped.bytes().chunks_exact_mut(RECORD).enumerate() {
        record.copy_from_slice(&initial(number as u64));
    }
    mapped.flush(0, len);
    mapped.finish()?;
    Opened::ready(InPlace(mapped))
}

impl Peer for InPlace {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        for change in changes {
            let at = change.record as usize * RECORD;
            self.0.bytes()[at..at + 8].copy_from_slice(&change.value.to_ne_bytes());
            self.0.flush(at, 8);
        }
        self.0.finish()
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        super::first_word(&self.0.bytes()[record as usize * RECORD..])
    }
}
