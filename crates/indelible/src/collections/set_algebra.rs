//! Operations on two sets: values that both have, or one of them alone.

use super::hash_set::PHashSet;
use super::key::StableHash;
use super::ordered_set::PBTreeSet;
use super::persist::Persist;
use std::cmp::Ordering;
use std::iter::Peekable;

macro_rules! algebra {
    ($set:ident, $($bound:path),+) => {
        impl<'h, T: Persist<'h> $(+ $bound)+> $set<'h, T> {
            /// The values that are in both sets.
            pub fn intersection<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
                self.iter().filter(|value| other.contains(*value))
            }

            /// The values that are in this set, and not in the other.
            pub fn difference<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
                self.iter().filter(|value| !other.contains(*value))
            }

            /// Whether no value is in both sets.
            #[must_use]
            pub fn is_disjoint(&self, other: &Self) -> bool {
                self.intersection(other).next().is_none()
            }

            /// Whether all values of this set are in the other.
            #[must_use]
            pub fn is_subset(&self, other: &Self) -> bool {
                self.len() <= other.len() && self.difference(other).next().is_none()
            }

            /// Whether all values of the other set are in this one.
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
    /// The values that are in one of the sets, or in both; in no order, each once.
    pub fn union<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        self.iter().chain(other.difference(self))
    }

    /// The values that are in one of the sets alone, in no order.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        self.difference(other).chain(other.difference(self))
    }
}

impl<'h, T: Persist<'h> + Ord> PBTreeSet<'h, T> {
    /// The values that are in one of the sets, or in both, in order.
    pub fn union<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        Merged { one: self.iter().peekable(), two: other.iter().peekable() }.map(|(value, _)| value)
    }

    /// The values that are in one of the sets alone, in order.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = &'a T> + use<'a, 'h, T> {
        let merged = Merged { one: self.iter().peekable(), two: other.iter().peekable() };
        merged.filter_map(|(value, both)| (!both).then_some(value))
    }
}

/// The values of two ordered iterators, in order, each with whether both have it.
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
