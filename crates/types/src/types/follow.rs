//! Values that only raw pointers lead to. They have no owner, so they may overlap. Each byte is
//! visited once per pointed-at type, so that rings end and no pointer stays hidden behind another
//! type. Repeated visits are bounded by the object's size.

use super::path::Kept;
use super::{Description, TypeId};
use indelible_store::Mutant;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

#[derive(Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(super) fn add(&mut self, start: u64, end: u64) -> bool {
        let free = self.0.range(..end).next_back().is_none_or(|(_, before)| *before <= start);
        if free {
            self.0.insert(start, end);
        }
        free
    }

    fn cover(&mut self, mut start: u64, mut end: u64) {
        while let Some((&from, &to)) = self.0.range(..end).next_back().filter(|(_, to)| **to > start) {
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
    }

    pub fn starts(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }

    pub fn gaps(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
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

pub(super) struct Target<'w> {
    pub(super) slot: u64,
    pub(super) path: Rc<Kept<'w>>,
    pub(super) at: u64,
    pub(super) description: &'w Description,
    pub(super) of: TypeId,
}

pub(super) struct Follow<'w> {
    pub(super) around: &'w dyn Fn(u64) -> Option<(u64, u64)>,
    pub(super) pending: Vec<Target<'w>>,
    pub(super) walked: Ranges,
    types: Vec<Looked<'w>>,
    places: HashMap<(usize, TypeId), usize>,
    left: u64,
    met: HashSet<u64>,
    told: HashSet<(u64, &'static str)>,
}

struct Looked<'w> {
    description: &'w Description,
    of: TypeId,
    walked: Ranges,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    Yes,
    Done,
    TooMany,
}

const LOOKS: u64 = 4 << 20;
const LOOKS_AT_BYTE: u64 = 8;
const COMPARED: u64 = 64;

impl<'w> Follow<'w> {
    pub(super) fn new(around: &'w dyn Fn(u64) -> Option<(u64, u64)>, len: u64) -> Self {
        Follow {
            around,
            pending: Vec::new(),
            walked: Ranges::default(),
            types: Vec::new(),
            places: HashMap::new(),
            left: LOOKS + LOOKS_AT_BYTE * len,
            met: HashSet::new(),
            told: HashSet::new(),
        }
    }

    pub(super) fn look(&mut self, target: &Target<'w>, end: u64, owned: bool) -> Look {
        let Target { at, description, of, .. } = *target;
        if description.get(of).plain || Mutant::SecondTypeIgnored.is_on() {
            let first = !owned && self.walked.add(at, end);
            return if first { Look::Yes } else { Look::Done };
        }
        let Some(place) = self.place(description, of) else { return Look::TooMany };
        if !self.types[place].walked.add(at, end) {
            return Look::Done;
        }
        let first = !owned && self.walked.add(at, end);
        if !first && !self.pay(end - at) {
            return Look::TooMany;
        }
        if !first && !owned {
            self.walked.cover(at, end);
        }
        Look::Yes
    }

    fn place(&mut self, description: &'w Description, of: TypeId) -> Option<usize> {
        let key = |description: &Description, of| (std::ptr::from_ref(description).addr(), of);
        if let Some(place) = self.places.get(&key(description, of)) {
            return Some(*place);
        }
        let (size, align) = (description.get(of).size, description.get(of).align);
        for place in 0..self.types.len() {
            let Looked { description: other, of: there, .. } = self.types[place];
            if (other.get(there).size, other.get(there).align) != (size, align) {
                continue;
            }
            let alike = description.alike(of, other, there);
            if !self.pay(COMPARED * (1 + alike.as_ref().map_or(0, HashSet::len) as u64)) {
                return None;
            }
            if alike.is_some() {
                self.places.insert(key(description, of), place);
                return Some(place);
            }
        }
        self.places.insert(key(description, of), self.types.len());
        self.types.push(Looked { description, of, walked: Ranges::default() });
        Some(self.types.len() - 1)
    }

    fn pay(&mut self, work: u64) -> bool {
        let left = self.left.checked_sub(work);
        self.left = left.unwrap_or(0);
        left.is_some()
    }

    pub(super) fn meet(&mut self, slot: u64) -> bool {
        self.met.insert(slot)
    }

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
        ranges.cover(20, 52);
        assert_eq!(ranges.gaps(0, 80), [(0, 16), (52, 56), (64, 80)]);
        ranges.cover(64, 72);
        ranges.cover(0, 4);
        ranges.cover(58, 60);
        assert_eq!(ranges.starts().collect::<Vec<_>>(), [0, 16, 56, 64]);
        ranges.cover(0, 100);
        assert_eq!((ranges.starts().collect::<Vec<_>>(), ranges.gaps(0, 101)), (vec![0], vec![(100, 101)]));
    }
}
