//! Who keeps the arrays of a kernel, and what it costs them to make a step durable.

mod checkpoint;
mod dram;
mod in_place;
mod own;

use crate::Result;
use crate::ground::Medium;
use std::ops::Range;
use std::path::Path;

const PAGE: usize = 4096;

/// Keeps arrays.
pub trait Keeper {
    /// The bytes of each array: zeros at first.
    fn arrays(&mut self) -> Vec<&mut [u8]>;

    /// Makes durable what changed since the last time: pages touched, by array.
    fn sync(&mut self, touched: &mut [Touched]) -> Result<()>;
}

/// Makes arrays of so many bytes.
type Open = fn(&Place<'_>, &[usize]) -> Result<Box<dyn Keeper>>;

/// Somebody who can be measured.
pub struct Contestant {
    pub name: &'static str,
    /// Whether a crash leaves the arrays as one sync left them.
    pub atomic: bool,
    pub open: Open,
}

/// Where arrays are kept.
pub struct Place<'a> {
    pub medium: Medium,
    /// An empty folder on the medium.
    pub dir: &'a Path,
}

/// No persistence at all.
pub const DRAM: Contestant = Contestant { name: "DRAM", atomic: false, open: dram::open };

/// Those who persist; the first is what losses are measured against.
pub const ALL: &[Contestant] = &[
    Contestant { name: "in place", atomic: false, open: in_place::open },
    Contestant { name: "indelible", atomic: true, open: own::open },
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
