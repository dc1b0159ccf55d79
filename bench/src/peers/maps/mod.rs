//! Maps of numbers, durable after each commit: Indelible's and others.

mod lmdb;
mod own;
mod pmem_hash;
mod pmem_tree;
mod redb;

use crate::Result;
use crate::environment::Medium;
use crate::peers::pmem::{MISSING, Pmem};
use std::fs::File;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Hash,
    Ordered,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Hash, Kind::Ordered];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Hash => "hash map",
            Kind::Ordered => "ordered map",
        }
    }

    pub fn short(self) -> &'static str {
        match self {
            Kind::Hash => "hash",
            Kind::Ordered => "ordered",
        }
    }
}

pub type Pair = (u64, u64);

pub trait Map {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()>;

    fn look(&mut self, keys: &[u64], every: usize) -> Result<u64>;

    fn sum(&mut self) -> Result<(u64, usize)>;

    fn all(&mut self) -> Result<Vec<Pair>>;
}

/// As [`Map`], with an inlined operation in the walk, as in programs.
trait NativeMap {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()>;

    fn look(&mut self, keys: &[u64], every: usize) -> Result<u64>;

    fn walk(&mut self, each: impl FnMut(u64, u64)) -> Result<()>;
}

impl<M: NativeMap> Map for M {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        NativeMap::insert(self, pairs)
    }

    fn look(&mut self, keys: &[u64], every: usize) -> Result<u64> {
        NativeMap::look(self, keys, every)
    }

    fn sum(&mut self) -> Result<(u64, usize)> {
        let (mut sum, mut count) = (0_u64, 0);
        self.walk(|key, value| {
            sum = sum.wrapping_add(key ^ value);
            count += 1;
        })?;
        Ok((sum, count))
    }

    fn all(&mut self) -> Result<Vec<Pair>> {
        let mut all = Vec::new();
        self.walk(|key, value| all.push((key, value)))?;
        Ok(all)
    }
}

pub struct Place<'a> {
    pub dir: &'a Path,
    pub medium: Medium,
    pub keys: u64,
    pub loaded: &'a [Pair],
}

pub struct Contestant {
    pub name: &'static str,
    pub own: bool,
    pub what: fn(Kind) -> &'static str,
    pub open: fn(Kind, &Place<'_>) -> Result<Opened>,
}

pub enum Opened {
    Ready(Box<dyn Map>),
    Missing(String),
}

impl Opened {
    fn ready(mut map: impl NativeMap + 'static, place: &Place<'_>) -> Result<Opened> {
        place.loaded.chunks(PIECE).try_for_each(|pairs| map.insert(pairs))?;
        Ok(Opened::Ready(Box::new(map)))
    }
}

pub const ALL: &[Contestant] = &[
    Contestant { name: "indelible", own: true, what: own::what, open: own::open },
    Contestant { name: "indelible, explicit", own: true, what: own::what, open: own::open_explicit },
    Contestant {
        name: "libpmemobj",
        own: false,
        what: |kind| match kind {
            Kind::Hash => "chained buckets",
            Kind::Ordered => "B-tree of 15 keys a node",
        },
        open: |kind, place| match kind {
            Kind::Hash => pmem_hash::open(place),
            Kind::Ordered => pmem_tree::open(place),
        },
    },
    Contestant { name: "LMDB", own: false, what: |_| "B+ tree", open: |_, place| lmdb::open(place) },
    Contestant { name: "redb", own: false, what: |_| "B tree", open: |_, place| redb::open(place) },
];

/// A map on libpmemobj, loaded as if its file were memory: on a disk each thousand keys take
/// seconds.
fn on_pmem<M: NativeMap + 'static>(
    place: &Place<'_>,
    root: usize,
    begin: fn(Pmem) -> Result<M>,
    again: fn(Pmem) -> M,
) -> Result<Opened> {
    let len = usize::try_from(place.keys * 256 + (128 << 20))?;
    let path = place.dir.join("pairs");
    let Some(pmem) = Pmem::create(&path, Medium::Memory, len, root)? else {
        return Ok(Opened::Missing(MISSING.into()));
    };
    let mut map = begin(pmem)?;
    place.loaded.chunks(PIECE).try_for_each(|pairs| map.insert(pairs))?;
    drop(map);
    File::open(&path)?.sync_all()?;
    match Pmem::open(&path, place.medium, root)? {
        Some(pmem) => Ok(Opened::Ready(Box::new(again(pmem)))),
        None => Ok(Opened::Missing(MISSING.into())),
    }
}

const GONE: &str = "a key is gone";

const PIECE: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Random;
    use std::collections::BTreeMap;

    #[test]
    fn everybody_keeps_what_was_inserted() {
        let dir = std::env::temp_dir().join(format!("maps-{}", std::process::id()));
        let mut random = Random::new(7);
        let pairs: Vec<Pair> = (0..20_000).map(|_| (random.next(), random.next())).collect();
        let expected: BTreeMap<u64, u64> = pairs.iter().copied().collect();
        for (kind, contestant) in Kind::ALL.iter().flat_map(|kind| ALL.iter().map(|c| (*kind, c))) {
            let own = dir.join(format!("{}-{}", contestant.name, kind.short()));
            std::fs::create_dir_all(&own).unwrap();
            let (loaded, more) = pairs.split_at(15_000);
            let place = Place { dir: &own, medium: Medium::Memory, keys: 20_000, loaded };
            let mut map = match (contestant.open)(kind, &place).unwrap() {
                Opened::Ready(map) => map,
                Opened::Missing(why) => {
                    eprintln!("not tested: {}: {why}", contestant.name);
                    continue;
                }
            };
            let (single, many) = more.split_at(40);
            single.iter().for_each(|pair| map.insert(&[*pair]).unwrap());
            many.chunks(3_000).for_each(|pairs| map.insert(pairs).unwrap());
            let found = map.all().unwrap();
            let sum = found.iter().fold(0_u64, |sum, (key, value)| sum.wrapping_add(key ^ value));
            assert_eq!(map.sum().unwrap(), (sum, found.len()), "{}", contestant.name);
            if kind == Kind::Ordered {
                assert!(found.is_sorted(), "{}", contestant.name);
            }
            assert_eq!(found.len(), pairs.len(), "{}", contestant.name);
            assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), expected, "{}", contestant.name);
            let keys: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
            let sum = pairs.iter().fold(0, |sum: u64, pair| sum.wrapping_add(pair.1));
            assert_eq!(map.look(&keys, 100).unwrap(), sum, "{}", contestant.name);
            assert!(map.look(&[1], 1).is_err(), "{}", contestant.name);
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
