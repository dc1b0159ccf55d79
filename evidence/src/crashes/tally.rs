//! What a campaign counts.

use std::collections::BTreeMap;
use std::ops::AddAssign;

macro_rules! tally {
    ($($field:ident = $name:literal,)+) => {
        /// Counts; their names are those in the record.
        #[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
        pub(crate) struct Tally {
            $(pub(crate) $field: u64,)+
        }

        impl AddAssign for Tally {
            fn add_assign(&mut self, other: Tally) {
                $(self.$field += other.$field;)+
            }
        }

        impl Tally {
            pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
                BTreeMap::from([$(($name.to_owned(), self.$field),)+])
            }
        }
    };
}

tally! {
    short_programs = "short programs, on each medium",
    exhausted = "short programs of which every image is covered",
    points = "points of short programs",
    classes = "images judged for short programs, one of each class at least",
    merged = "classes that stand for more than one image",
    programs = "random programs",
    steps = "steps of random programs",
    refused = "calls refused as the model said",
    deaths = "processes that died",
    made = "images made of random programs",
    distinct = "distinct images of random programs",
    recovery = "distinct images during recovery",
    second = "distinct images during recovery of recovery",
    full = "images judged in full",
    violations = "violations",
}

impl Tally {
    /// Images judged, each different from all others of its program or standing for a class of its own.
    pub(crate) fn judged(&self) -> u64 {
        self.classes + self.distinct + self.recovery + self.second
    }
}
