//! Libraries that make changes durable: Indelible and others.
//!
//! All keep the same records and get the same changes; a wrong answer fails the run.

mod in_place;
pub mod library;
mod lmdb;
pub mod maps;
mod own;
pub mod pmem;
pub mod pmem_ring;
mod pmemobj;
mod redb;
mod rocksdb;
pub mod sealed;
mod sqlite;

use crate::Result;
use crate::environment::Medium;
use std::path::Path;

pub const RECORD: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub record: u64,
    pub value: u64,
}

pub trait Peer {
    fn commit(&mut self, changes: &[Change]) -> Result<()>;

    fn word(&mut self, record: u64) -> Result<u64>;
}

pub struct Place<'a> {
    pub dir: &'a Path,
    pub medium: Medium,
    pub records: u64,
}

pub struct Contestant {
    pub name: &'static str,
    pub own: bool,
    pub atomic: bool,
    pub open: fn(&Place<'_>) -> Result<Opened>,
}

pub enum Opened {
    Ready(Box<dyn Peer>),
    Missing(String),
}

impl Opened {
    fn ready(peer: impl Peer + 'static) -> Result<Opened> {
        Ok(Opened::Ready(Box::new(peer)))
    }
}

pub const ALL: &[Contestant] = &[
    Contestant { name: "indelible", own: true, atomic: true, open: own::open },
    Contestant { name: "indelible, explicit", own: true, atomic: true, open: own::open_explicit },
    Contestant { name: "in place", own: false, atomic: false, open: in_place::open },
    Contestant { name: "libpmemobj", own: false, atomic: true, open: pmemobj::open },
    Contestant { name: "LMDB", own: false, atomic: true, open: lmdb::open },
    Contestant { name: "redb", own: false, atomic: true, open: redb::open },
    Contestant { name: "SQLite", own: false, atomic: true, open: sqlite::open },
    Contestant { name: "RocksDB", own: false, atomic: true, open: rocksdb::open },
];

pub fn initial(record: u64) -> [u8; RECORD] {
    let mut random = crate::pattern::Random::new(record);
    let mut bytes = [0; RECORD];
    bytes[..8].copy_from_slice(&record.to_ne_bytes());
    for word in bytes[8..].chunks_exact_mut(8) {
        word.copy_from_slice(&random.next().to_ne_bytes());
    }
    bytes
}

fn first_word(record: &[u8]) -> Result<u64> {
    let word = record.first_chunk::<8>().ok_or("a record is too short")?;
    Ok(u64::from_ne_bytes(*word))
}

fn set_first_word(record: &mut [u8], value: u64) -> Result<()> {
    record.first_chunk_mut::<8>().ok_or("a record is too short")?.copy_from_slice(&value.to_ne_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_keeps_what_was_committed() {
        let dir = std::env::temp_dir().join(format!("peers-{}", std::process::id()));
        for contestant in ALL {
            let own = dir.join(contestant.name);
            std::fs::create_dir_all(&own).unwrap();
            let place = Place { dir: &own, medium: Medium::File, records: 5000 };
            let mut peer = match (contestant.open)(&place).unwrap() {
                Opened::Ready(peer) => peer,
                Opened::Missing(why) => {
                    eprintln!("not tested: {}: {why}", contestant.name);
                    continue;
                }
            };
            let changes: Vec<Change> =
                (0..100).map(|n| Change { record: n * 37 % 5000, value: 1_000_000 + n }).collect();
            peer.commit(&changes).unwrap();
            for change in &changes {
                assert_eq!(peer.word(change.record).unwrap(), change.value, "{}", contestant.name);
            }
            assert_eq!(peer.word(4999).unwrap(), 4999, "{}", contestant.name);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
