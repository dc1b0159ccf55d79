//! LMDB: a copy-on-write B+ tree in a mapped file, with defaults.

#![allow(unsafe_code)]

use super::{Change, Opened, Peer, Place, RECORD, first_word, initial, set_first_word};
use crate::Result;
use heed::types::{Bytes, U64};
use heed::{Database, Env, EnvOpenOptions, PutFlags};

type Key = U64<heed::byteorder::BigEndian>;

struct Lmdb {
    env: Env,
    records: Database<Key, Bytes>,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let room = (place.records * RECORD as u64 * 3 + (256 << 20)).next_multiple_of(1 << 20);
    // SAFETY: a folder of this process alone.
    let env = unsafe { EnvOpenOptions::new().map_size(usize::try_from(room)?).open(place.dir)? };
    let mut transaction = env.write_txn()?;
    let records = env.create_database(&mut transaction, None)?;
    for record in 0..place.records {
        records.put_with_flags(&mut transaction, PutFlags::APPEND, &record, &initial(record)[..])?;
    }
    transaction.commit()?;
    Opened::ready(Lmdb { env, records })
}

impl Peer for Lmdb {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for change in changes {
            let mut bytes = [0; RECORD];
            bytes.copy_from_slice(self.records.get(&transaction, &change.record)?.ok_or("a record is gone")?);
            set_first_word(&mut bytes, change.value)?;
            self.records.put(&mut transaction, &change.record, &bytes)?;
        }
        Ok(transaction.commit()?)
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        let transaction = self.env.read_txn()?;
        first_word(self.records.get(&transaction, &record)?.ok_or("a record is gone")?)
    }
}
