//! Persistence backends: they keep the arrays of a kernel, and count the cost of making a step
//! durable.

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

/// Keeps arrays.
pub trait ArrayBackend {
    /// The bytes of each array: zeros at first.
    fn arrays(&mut self) -> Vec<&mut [u8]>;

    /// Makes durable what changed since the last time: pages touched, by array.
    fn sync(&mut self, touched: &mut [Touched]) -> Result<()>;

    /// Whether it must be told before a step where the step stores.
    fn asks_before(&self) -> bool {
        false
    }

    /// Is told that a step is about to store to a range of an array. Failures are reported by the
    /// next sync.
    fn before(&mut self, _array: usize, _bytes: Range<usize>) {}

    /// Parts of the time of all syncs so far, and the bytes they moved, where the backend counts
    /// them.
    fn profile(&self) -> Option<Profile> {
        None
    }
}

/// Work and time of syncs, by the backend's own counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Profile {
    /// Nanoseconds by part, as [`PARTS`] names them.
    pub parts: [f64; PARTS.len()],
    /// Pages compared, and those of them that had changed.
    pub compared: f64,
    pub changed: f64,
    /// Bytes given to the log.
    pub logged: f64,
}

/// Parts of a psync.
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

/// Makes arrays of so many bytes.
type Open = fn(&Place<'_>, &[usize]) -> Result<Opened>;

/// Result of opening.
pub enum Opened {
    Ready(Box<dyn ArrayBackend>),
    /// Why it cannot be measured here, and the remedy.
    Missing(String),
}

/// A backend that can be measured.
pub struct Contestant {
    pub name: &'static str,
    /// Whether a crash leaves the arrays as one sync left them.
    pub atomic: bool,
    pub open: Open,
}

/// Medium and folder of the arrays.
pub struct Place<'a> {
    pub medium: Medium,
    /// An empty folder on the medium.
    pub dir: &'a Path,
}

/// No persistence at all.
pub const DRAM: Contestant = Contestant { name: "DRAM", atomic: false, open: dram::open };

/// The backends that persist; losses are measured against the first.
pub const ALL: &[Contestant] = &[
    Contestant { name: "in place", atomic: false, open: in_place::open },
    Contestant { name: "indelible", atomic: true, open: own::open },
    Contestant { name: "libpmemobj", atomic: true, open: pmemobj::open },
    Contestant { name: "copy and rename", atomic: true, open: checkpoint::open },
];

/// Pages of an array that were touched.
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

    /// Hands out each page and forgets it.
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
