use super::Mode;
use crate::Result;
use crate::pattern::Random;
use rusqlite::{Connection, params};
use std::path::Path;

const PROBES: u64 = 10_000;

pub const ALL: [&str; 7] = ["load", "mean", "median", "sort", "find", "index", "probe"];

pub struct Numbers {
    pub mode: Mode,
    connection: Connection,
    count: u64,
}

impl Numbers {
    pub fn open(mode: Mode, folder: &Path, count: u64) -> Result<Numbers> {
        let connection = mode.open(folder, "numbers.db")?;
        Ok(Numbers { mode, connection, count })
    }

    pub fn run(&mut self, query: &str) -> Result<i64> {
        let number = |sql: &str| self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        match query {
            "load" => self.load(),
            "mean" => Ok(number("SELECT CAST(avg(v) AS INTEGER) FROM n")?),
            "median" => {
                let sql = format!("SELECT v FROM n ORDER BY v LIMIT 1 OFFSET {}", self.count / 2);
                Ok(number(&sql)?)
            }
            "sort" => {
                let mut all = self.connection.prepare("SELECT v FROM n ORDER BY v")?;
                let (mut rows, mut sum) = (all.query([])?, 0_i64);
                while let Some(row) = rows.next()? {
                    sum = sum.wrapping_mul(31).wrapping_add(row.get(0)?);
                }
                Ok(sum)
            }
            "find" => Ok(number("SELECT count(*) FROM n WHERE v % 1000 = 7")?),
            "index" => {
                self.connection.execute_batch("CREATE INDEX of_v ON n(v)")?;
                self.mode.settle(&self.connection)?;
                Ok(0)
            }
            _ => {
                let mut random = Random::new(7);
                let mut probe = self.connection.prepare("SELECT count(*), sum(k) FROM n WHERE v = ?")?;
                (0..PROBES).try_fold(0_i64, |sum, _| {
                    let sought = random.below(self.count) as i64;
                    let found: (i64, Option<i64>) =
                        probe.query_row([sought], |row| Ok((row.get(0)?, row.get(1)?)))?;
                    Ok(sum.wrapping_add(found.0).wrapping_add(found.1.unwrap_or(0)))
                })
            }
        }
    }

    fn load(&mut self) -> Result<i64> {
        let mut random = Random::new(1);
        let transaction = self.connection.transaction()?;
        transaction
            .execute_batch("DROP TABLE IF EXISTS n; CREATE TABLE n(k INTEGER PRIMARY KEY, v INTEGER)")?;
        {
            let mut insert = transaction.prepare("INSERT INTO n VALUES (?, ?)")?;
            for key in 0..self.count {
                insert.execute(params![key, random.below(self.count)])?;
            }
        }
        transaction.commit()?;
        self.mode.settle(&self.connection)?;
        Ok(0)
    }
}
