//! YCSB's workloads and single insertions, each operation a transaction.

use super::Mode;
use crate::Result;
use crate::pattern::Random;
use rusqlite::{Connection, params};
use std::path::Path;

const NAME: &str = "ycsb.db";
const VALUE: usize = 1000;
const SCAN: u64 = 100;
/// YCSB's constant of the Zipf distribution.
const SKEW: f64 = 0.99;

/// Percentages of operations: read, update, insert, scan, read and then update.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub name: &'static str,
    shares: [u64; 5],
    latest: bool,
}

pub const ALL: [Workload; 7] = [
    Workload { name: "insert", shares: [0, 0, 100, 0, 0], latest: false },
    Workload { name: "A: half updates", shares: [50, 50, 0, 0, 0], latest: false },
    Workload { name: "B: 5 % updates", shares: [95, 5, 0, 0, 0], latest: false },
    Workload { name: "C: look-ups", shares: [100, 0, 0, 0, 0], latest: false },
    Workload { name: "D: the latest, 5 % insertions", shares: [95, 0, 5, 0, 0], latest: true },
    Workload { name: "E: scans, 5 % insertions", shares: [0, 0, 5, 95, 0], latest: false },
    Workload { name: "F: half read and update", shares: [50, 0, 0, 0, 50], latest: false },
];

pub const UPDATES: Workload = Workload { name: "updates", shares: [0, 100, 0, 0, 0], latest: false };

/// Ranks by Zipf's law, as YCSB draws them (Gray et al.).
#[derive(Clone, Debug)]
struct Zipf {
    count: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(count: u64) -> Zipf {
        let zeta = |n: u64| (1..=n).map(|rank| (rank as f64).powf(-SKEW)).sum::<f64>();
        let (all, two) = (zeta(count), zeta(2));
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - SKEW)) / (1.0 - two / all);
        Zipf { count: count as f64, alpha: 1.0 / (1.0 - SKEW), zeta: all, eta }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let scaled = share * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(SKEW) {
            return 1;
        }
        (self.count * (self.eta * share - self.eta + 1.0).powf(self.alpha)) as u64
    }
}

pub struct Table {
    pub mode: Mode,
    connection: Connection,
    random: Random,
    zipf: Zipf,
    loaded: u64,
    rows: u64,
}

fn value(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; VALUE];
    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&random.next().to_ne_bytes()));
    bytes
}

impl Table {
    pub fn load(mode: Mode, folder: &Path, rows: u64) -> Result<Table> {
        Table::load_as(mode, folder, NAME, rows)
    }

    pub fn load_as(mode: Mode, folder: &Path, name: &str, rows: u64) -> Result<Table> {
        let mut connection = mode.open(folder, name)?;
        connection.execute_batch("CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB)")?;
        let mut random = Random::new(55);
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO t VALUES (?, ?)")?;
            for key in 0..rows {
                insert.execute(params![key, value(&mut random)])?;
            }
        }
        transaction.commit()?;
        mode.settle(&connection)?;
        Ok(Table { mode, connection, random, zipf: Zipf::new(rows), loaded: rows, rows })
    }

    /// The table that another process has loaded.
    pub fn open(mode: Mode, folder: &Path) -> Result<Table> {
        let connection = mode.open(folder, NAME)?;
        let rows = connection.query_row("SELECT count(*) FROM t", [], |row| row.get(0))?;
        Ok(Table { mode, connection, random: Random::new(56), zipf: Zipf::new(rows), loaded: rows, rows })
    }

    pub fn change(&mut self, key: u64) -> Result<()> {
        self.update(key % self.rows)
    }

    pub fn look_up(&self, key: u64) -> Result<()> {
        self.read(key)
    }

    fn key(&mut self, latest: bool) -> u64 {
        let rank = self.zipf.rank(&mut self.random);
        match latest {
            true => self.rows - 1 - rank.min(self.rows - 1),
            false => rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.loaded,
        }
    }

    fn read(&self, key: u64) -> Result<()> {
        let mut select = self.connection.prepare_cached("SELECT v FROM t WHERE k = ?")?;
        let len = select.query_row([key], |row| Ok(row.get_ref(0)?.as_blob()?.len()))?;
        if len == VALUE { Ok(()) } else { Err("a value is wrong".into()) }
    }

    fn update(&mut self, key: u64) -> Result<()> {
        let value = value(&mut self.random);
        let mut update = self.connection.prepare_cached("UPDATE t SET v = ? WHERE k = ?")?;
        if update.execute(params![value, key])? == 1 { Ok(()) } else { Err("a row is gone".into()) }
    }

    fn step(&mut self, workload: &Workload) -> Result<()> {
        let mut share = self.random.below(100);
        let kind = workload.shares.iter().position(|of| match share < *of {
            true => true,
            false => {
                share -= of;
                false
            }
        });
        match kind.unwrap_or(0) {
            0 => {
                let key = self.key(workload.latest);
                self.read(key)
            }
            1 => {
                let key = self.key(false);
                self.update(key)
            }
            2 => {
                let value = value(&mut self.random);
                let mut insert = self.connection.prepare_cached("INSERT INTO t VALUES (?, ?)")?;
                insert.execute(params![self.rows, value])?;
                self.rows += 1;
                Ok(())
            }
            3 => {
                let (key, most) = (self.key(false), 1 + self.random.below(SCAN));
                let sql = "SELECT v FROM t WHERE k >= ? ORDER BY k LIMIT ?";
                let mut scan = self.connection.prepare_cached(sql)?;
                let mut found = scan.query([key, most])?;
                while let Some(row) = found.next()? {
                    std::hint::black_box(row.get_ref(0)?.as_blob()?.len());
                }
                Ok(())
            }
            _ => {
                let key = self.key(false);
                let transaction = self.connection.unchecked_transaction()?;
                self.read(key)?;
                let value = value(&mut self.random);
                transaction.prepare_cached("UPDATE t SET v = ? WHERE k = ?")?.execute(params![value, key])?;
                Ok(transaction.commit()?)
            }
        }
    }

    pub fn step_often(&mut self, workload: &Workload, count: usize) -> Result<()> {
        (0..count).try_for_each(|_| self.step(workload))
    }

    pub fn run(&mut self, workload: &Workload, count: usize) -> Result<()> {
        self.step_often(workload, count)?;
        self.mode.settle(&self.connection)
    }

    pub fn sum(&self) -> Result<i64> {
        let sound: String = self.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if sound != "ok" {
            return Err(format!("{}: {sound}", self.mode.word()).into());
        }
        let sum = "SELECT sum(k * 31 + unicode(hex(v))) FROM t";
        Ok(self.connection.query_row(sum, [], |row| row.get(0))?)
    }
}
