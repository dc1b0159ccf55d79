//! Indelible: records at their places in an object, changed by plain stores.

use super::{Change, Opened, Peer, Place, RECORD, initial};
use crate::Result;
use indelible::{CreateOptions, Object, Pool, PoolOptions};

struct Own {
    object: Object,
    _pool: Pool,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let len = place.records * RECORD as u64;
    let options = PoolOptions::new().medium(place.medium.kind()).force(true);
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
        let bytes = self.object.as_mut_slice();
        for change in changes {
            let at = change.record as usize * RECORD;
            bytes[at..at + 8].copy_from_slice(&change.value.to_ne_bytes());
        }
        Ok(self.object.psync()?)
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        super::first_word(&self.object.as_slice()[record as usize * RECORD..])
    }
}
