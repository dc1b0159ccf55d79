mod checkpoint;
mod dram;
mod in_place;
mod own;
mod pmemobj;

use crate::Result;
use crate::environment::Medium;
use std::ops::Range;
use std::path::Path;

const PAGE: usize = 4096;

pub trait ArrayBackend {
    fn arrays(&mut self) -> Vec<&mut [u8]>;

    fn sync(&mut self, touched: &mut [Touched]) -> Result<()>;

    fn asks_before(&self) -> bool {
        false
    }

    /// Announces stores to a range of an array. The next sync reports failures.
    fn before(&mut self, _array: usize, _bytes: Range<usize>) {}

    fn profile(&self) -> Option<Profile> {
        None
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    /// Nanoseconds by [`PARTS`].
    pub parts: [f64; PARTS.len()],
    pub compared: f64,
    pub changed: f64,
    pub logged: f64,
}

pub const PARTS: [&str; 6] = ["collect", "load", "compare", "log", "apply", "settle"];

impl std::ops::Sub for Profile {
    type Output = Profile;

    fn sub(self, earlier: Profile) -> Profile {
        let mut parts = self.parts;
        parts.iter_mut().zip(earlier.parts).for_each(|(part, earlier)| *part -= earlier);
        Profile {
            parts,
            compared: self.compared - earlier.compared,
            changed: self.changed - earlier.changed,
            logged: self.logged - earlier.logged,
        }
    }
}

type Open = fn(&Place<'_>, &[usize]) -> Result<Opened>;

pub enum Opened {
    Ready(Box<dyn ArrayBackend>),
    Missing(String),
}

pub struct Contestant {
    pub name: &'static str,
    pub atomic: bool,
    pub open: Open,
}

pub struct Place<'a> {
    pub medium: Medium,
    pub dir: &'a Path,
}

pub const DRAM: Contestant = Contestant { name: "DRAM", atomic: false, open: dram::open };

pub const ALL: &[Contestant] = &[
    Contestant { name: "in place", atomic: false, open: in_place::open },
    Contestant { name: "indelible", atomic: true, open: own::open },
    Contestant { name: "libpmemobj", atomic: true, open: pmemobj::open },
    Contestant { name: "copy and rename", atomic: true, open: checkpoint::open },
];

pub struct Touched {
    bits: Vec<u64>,
}

impl Touched {
    pub fn new(len: usize) -> Self {
        Touched { bits: vec![0; len.div_ceil(PAGE).div_ceil(64)] }
    }

    pub fn add(&mut self, bytes: Range<usize>) {
        if bytes.is_empty() {
            return;
        }
        for page in bytes.start / PAGE..=(bytes.end - 1) / PAGE {
            self.bits[page / 64] |= 1 << (page % 64);
        }
    }

    pub fn has(&self, page: usize) -> bool {
        self.bits[page / 64] >> (page % 64) & 1 == 1
    }

    pub fn count(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn take(&mut self, mut page: impl FnMut(usize)) {
        for (number, word) in self.bits.iter_mut().enumerate() {
            while *word != 0 {
                page(number * 64 + word.trailing_zeros() as usize);
                *word &= *word - 1;
            }
        }
    }

    pub fn clear(&mut self) {
        self.bits.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_keeps_what_was_synced() {
        let dir = std::env::temp_dir().join(format!("array_backends-{}", std::process::id()));
        let lengths = [PAGE * 3 + 8, 16];
        for contestant in std::iter::once(&DRAM).chain(ALL) {
            std::fs::create_dir_all(&dir).unwrap();
            let mut backend =
                match (contestant.open)(&Place { medium: Medium::Memory, dir: &dir }, &lengths).unwrap() {
                    Opened::Ready(backend) => backend,
                    Opened::Missing(why) => {
                        eprintln!("not tested: {}: {why}", contestant.name);
                        continue;
                    }
                };
            let mut touched: Vec<Touched> = lengths.iter().map(|len| Touched::new(*len)).collect();
            for round in 0..3_u8 {
                for (array, len) in lengths.into_iter().enumerate() {
                    if round > 0 && backend.asks_before() {
                        backend.before(array, len - 9..len);
                        backend.before(array, 0..len);
                    }
                    backend.arrays()[array].fill(round);
                    touched[array].add(0..len);
                }
                backend.sync(&mut touched).unwrap();
                touched.iter_mut().for_each(Touched::clear);
            }
            assert!(backend.arrays().iter().all(|array| array.iter().all(|byte| *byte == 2)));
            drop(backend);
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn pages_are_touched_by_bytes() {
        let mut touched = Touched::new(PAGE * 100);
        touched.add(5..5);
        assert_eq!(touched.count(), 0);
        touched.add(PAGE - 1..PAGE + 1);
        touched.add(PAGE * 99..PAGE * 100);
        let mut pages = Vec::new();
        touched.take(|page| pages.push(page));
        assert_eq!((pages, touched.count()), (vec![0, 1, 99], 0));
    }
}
