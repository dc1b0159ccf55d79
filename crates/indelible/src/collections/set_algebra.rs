use super::hash_set::PHashSet;
use super::key::StableHash;
use super::ordered_set::PBTreeSet;
use super::persist::Persist;
use std::cmp::Ordering;
use std::iter::Peekable;

macro_rules! algebra {
    ($set:ident, $($bound:path),+) => {
        impl<'h, T: Persist<'h> $(+ $bound)+> $set<'h, T> {
            /// The values in both sets.
            pub fn intersection<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
                self.iter().filter(|value| other.contains(*value))
            }

            /// The values in this set alone.
            pub fn difference<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
                self.iter().filter(|value| !other.contains(*value))
            }

            /// Whether the sets have no common value.
            #[must_use]
            pub fn is_disjoint(&self, other: &Self) -> bool {
                self.intersection(other).next().is_none()
            }

            /// Whether the other set has all values of this one.
            #[must_use]
            pub fn is_subset(&self, other: &Self) -> bool {
                self.len() <= other.len() && self.difference(other).next().is_none()
            }

            /// Whether this set has all values of the other.
            #[must_use]
            pub fn is_superset(&self, other: &Self) -> bool {
                other.is_subset(self)
            }
        }
    };
}

algebra!(PHashSet, StableHash, Eq);
algebra!(PBTreeSet, Ord);

impl<'h, T: Persist<'h> + StableHash + Eq> PHashSet<'h, T> {
    /// The values in either set, each once, unordered.
    pub fn union<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        self.iter().chain(other.difference(self))
    }

    /// The values in exactly one set, unordered.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        self.difference(other).chain(other.difference(self))
    }
}

impl<'h, T: Persist<'h> + Ord> PBTreeSet<'h, T> {
    /// The values in either set, in order.
    pub fn union<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        Merged { one: self.iter().peekable(), two: other.iter().peekable() }.map(|(value, _)| value)
    }

    /// The values in exactly one set, in order.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        let merged = Merged { one: self.iter().peekable(), two: other.iter().peekable() };
        merged.filter_map(|(value, both)| (!both).then_some(value))
    }
}

struct Merged<I: Iterator> {
    one: Peekable<I>,
    two: Peekable<I>,
}

impl<I: Iterator<Item: Ord>> Iterator for Merged<I> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<(I::Item, bool)> {
        let order = match (self.one.peek(), self.two.peek()) {
            (Some(one), Some(two)) => one.cmp(two),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => self.one.next().map(|value| (value, false)),
            Ordering::Greater => self.two.next().map(|value| (value, false)),
            Ordering::Equal => {
                self.two.next();
                self.one.next().map(|value| (value, true))
            }
        }
    }
}
