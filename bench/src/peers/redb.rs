//! redb: a copy-on-write B tree in a file, durable at each commit by default.

use super::{Change, Opened, Peer, Place, RECORD, first_word, initial, set_first_word};
use crate::Result;
use redb::{Database, ReadableDatabase, TableDefinition};

const RECORDS: TableDefinition<'_, u64, [u8; RECORD]> = TableDefinition::new("records");
const PIECE: u64 = 1 << 20;

struct Redb(Database);

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let database = Database::create(place.dir.join("records"))?;
    for from in (0..place.records).step_by(PIECE as usize) {
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for record in from..(from + PIECE).min(place.records) {
                table.insert(record, initial(record))?;
            }
        }
        transaction.commit()?;
    }
    Opened::ready(Redb(database))
}

impl Peer for Redb {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for change in changes {
                let mut record = table.get_mut(change.record)?.ok_or("a record is gone")?;
                let mut bytes = record.value();
                set_first_word(&mut bytes, change.value)?;
                record.insert(bytes)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        let table = self.0.begin_read()?.open_table(RECORDS)?;
        first_word(&table.get(record)?.ok_or("a record is gone")?.value())
    }
}
