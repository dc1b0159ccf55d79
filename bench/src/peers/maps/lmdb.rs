#![allow(unsafe_code)]

use super::{GONE, NativeMap, Opened, Pair, Place};
use crate::Result;
use heed::types::U64;
use heed::{Database, Env, EnvOpenOptions};

type Key = U64<heed::byteorder::BigEndian>;

struct Lmdb {
    env: Env,
    pairs: Database<Key, Key>,
}

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let room = (place.keys * 128 + (256 << 20)).next_multiple_of(1 << 20);
    // SAFETY: a folder of this process alone.
    let env = unsafe { EnvOpenOptions::new().map_size(usize::try_from(room)?).open(place.dir)? };
    let mut transaction = env.write_txn()?;
    let pairs = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Opened::ready(Lmdb { env, pairs }, place)
}

impl NativeMap for Lmdb {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in pairs {
            self.pairs.put(&mut transaction, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn look(&mut self, keys: &[u64], every: usize) -> Result<u64> {
        let mut sum: u64 = 0;
        for keys in keys.chunks(every) {
            let transaction = self.env.read_txn()?;
            for key in keys {
                sum = sum.wrapping_add(self.pairs.get(&transaction, key)?.ok_or(GONE)?);
            }
        }
        Ok(sum)
    }

    fn walk(&mut self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        let transaction = self.env.read_txn()?;
        for pair in self.pairs.iter(&transaction)? {
            let (key, value) = pair?;
            each(key, value);
        }
        Ok(())
    }
}
