//! Values that only raw pointers lead to.
//!
//! Nobody owns them, so nothing says how many there are, or that no two of them overlap. Pointers are followed when all that is owned
//! was gone through, and a byte is gone through behind pointers once: rings come to an end, and time and memory are in proportion to the
//! object, whatever is in it.

use super::path::Kept;
use super::{Description, TypeId};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

/// Ranges of addresses that do not overlap.
#[derive(Debug, Default)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range, unless a part of it was there.
    pub(super) fn add(&mut self, start: u64, end: u64) -> bool {
        let free = self.0.range(..end).next_back().is_none_or(|(_, before)| *before <= start);
        if free {
            self.0.insert(start, end);
        }
        free
    }

    /// The first address of each.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }

    /// Parts of a range that contains or misses each of them: those that belong to none.
    pub(crate) fn gaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let (mut gaps, mut at) = (Vec::new(), start);
        for (&from, &to) in self.0.range(start..end) {
            if from > at {
                gaps.push((at, from));
            }
            at = to;
        }
        if at < end {
            gaps.push((at, end));
        }
        gaps
    }
}

/// The value that a pointer leads to, in a block in use.
pub(super) struct Target<'w> {
    /// The pointer.
    pub(super) slot: u64,
    pub(super) path: Rc<Kept<'w>>,
    pub(super) at: u64,
    pub(super) description: &'w Description,
    pub(super) of: TypeId,
}

/// Pointers that are followed.
pub(super) struct Follow<'w> {
    /// Address and length of the block in use that an address lies in.
    pub(super) around: &'w dyn Fn(u64) -> Option<(u64, u64)>,
    pub(super) pending: Vec<Target<'w>>,
    /// Bytes that were gone through behind pointers.
    pub(super) walked: Ranges,
    /// Pointers that were met.
    met: HashSet<u64>,
    /// Places of which something was said.
    told: HashSet<(u64, &'static str)>,
}

impl<'w> Follow<'w> {
    pub(super) fn new(around: &'w dyn Fn(u64) -> Option<(u64, u64)>) -> Self {
        Follow {
            around,
            pending: Vec::new(),
            walked: Ranges::default(),
            met: HashSet::new(),
            told: HashSet::new(),
        }
    }

    /// Whether the pointer at an address was not met yet.
    pub(super) fn meet(&mut self, slot: u64) -> bool {
        self.met.insert(slot)
    }

    /// Whether this was not said of a place yet.
    pub(super) fn tell(&mut self, place: u64, what: &'static str) -> bool {
        self.told.insert((place, what))
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn ranges_do_not_overlap() {
        let mut ranges = Ranges::default();
        assert!(ranges.add(16, 24) && ranges.add(32, 40) && ranges.add(24, 32));
        for (start, end) in [(16, 24), (8, 17), (20, 22), (39, 48), (0, 100)] {
            assert!(!ranges.add(start, end), "{start} to {end}");
        }
        assert!(ranges.add(56, 64));
        assert_eq!(ranges.starts().collect::<Vec<_>>(), [16, 24, 32, 56]);
        assert_eq!(ranges.gaps(0, 80), [(0, 16), (40, 56), (64, 80)]);
        assert_eq!(ranges.gaps(16, 40), []);
        assert_eq!(ranges.gaps(100, 101), [(100, 101)]);
    }
}
