use super::{GONE, NativeMap, Opened, Pair, Place};
use crate::Result;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

const PAIRS: TableDefinition<'_, u64, u64> = TableDefinition::new("pairs");

struct Redb(Database);

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let database = Database::create(place.dir.join("pairs"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(PAIRS)?;
    transaction.commit()?;
    Opened::ready(Redb(database), place)
}

impl NativeMap for Redb {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(PAIRS)?;
            for (key, value) in pairs {
                table.insert(key, value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn look(&mut self, keys: &[u64], every: usize) -> Result<u64> {
        let mut sum: u64 = 0;
        for keys in keys.chunks(every) {
            let table = self.0.begin_read()?.open_table(PAIRS)?;
            for key in keys {
                sum = sum.wrapping_add(table.get(key)?.ok_or(GONE)?.value());
            }
        }
        Ok(sum)
    }

    fn walk(&mut self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        for pair in self.0.begin_read()?.open_table(PAIRS)?.iter()? {
            let (key, value) = pair?;
            each(key.value(), value.value());
        }
        Ok(())
    }
}
