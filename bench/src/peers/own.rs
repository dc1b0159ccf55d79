#![allow(unsafe_code)]

use super::{Change, Opened, Peer, Place, RECORD, initial};
use crate::Result;
use indelible::{CreateOptions, Object, Pool, PoolOptions, Tracking};

struct Own {
    object: Object,
    _pool: Pool,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    open_tracking(place, Tracking::Auto)
}

/// Stores are marked, as libpmemobj requires.
pub fn open_explicit(place: &Place<'_>) -> Result<Opened> {
    open_tracking(place, Tracking::Explicit)
}

fn open_tracking(place: &Place<'_>, tracking: Tracking) -> Result<Opened> {
    let len = place.records * RECORD as u64;
    let options = PoolOptions::new().medium(place.medium.kind()).tracking(tracking).force(true);
    let pool = options.format(place.dir.join("pool"), len + (256 << 20))?;
    pool.create_with("records", &CreateOptions::new(len))?;
    let mut object = pool.attach("records")?;
    for (number, record) in object.as_mut_slice().chunks_exact_mut(RECORD).enumerate() {
        record.copy_from_slice(&initial(number as u64));
    }
    object.psync()?;
    object.checkpoint()?;
    Opened::ready(Own { object, _pool: pool })
}

impl Peer for Own {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let (records, marks) = (self.object.as_mut_ptr(), self.object.needs_marks());
        for change in changes {
            let at = change.record as usize * RECORD;
            // SAFETY: a word of a record.
            unsafe { records.add(at).cast::<u64>().write(change.value) };
            if marks {
                self.object.mark_dirty(at..at + 8);
            }
        }
        Ok(self.object.psync()?)
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        super::first_word(&self.object.as_slice()[record as usize * RECORD..])
    }
}
