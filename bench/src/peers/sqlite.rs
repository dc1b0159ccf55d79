//! SQLite: a table with a write-ahead log, synced at each commit.

use super::{Change, Opened, Peer, Place, initial};
use crate::Result;
use rusqlite::{Connection, params};

struct Sqlite(Connection);

pub fn open(place: &Place<'_>) -> Result<Opened> {
    let mut connection = Connection::open(place.dir.join("records"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute("CREATE TABLE records (number INTEGER PRIMARY KEY, word INTEGER, rest BLOB)", [])?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO records VALUES (?, ?, ?)")?;
        for record in 0..place.records {
            insert.execute(params![record as i64, record as i64, &initial(record)[8..]])?;
        }
    }
    transaction.commit()?;
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE")?;
    Opened::ready(Sqlite(connection))
}

impl Peer for Sqlite {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        let transaction = self.0.transaction()?;
        {
            let mut update = transaction.prepare_cached("UPDATE records SET word = ? WHERE number = ?")?;
            for change in changes {
                if update.execute(params![change.value as i64, change.record as i64])? != 1 {
                    return Err("a record is gone".into());
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn word(&mut self, record: u64) -> Result<u64> {
        let mut select = self.0.prepare_cached("SELECT word FROM records WHERE number = ?")?;
        let word: i64 = select.query_row([record as i64], |row| row.get(0))?;
        Ok(word as u64)
    }
}
