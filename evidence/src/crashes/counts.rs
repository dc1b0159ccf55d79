use std::collections::BTreeMap;
use std::ops::AddAssign;

macro_rules! counts {
    ($($field:ident = $name:literal,)+) => {
        #[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
        pub(crate) struct Counts {
            $(pub(crate) $field: u64,)+
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Counts) {
                $(self.$field += other.$field;)+
            }
        }

        impl Counts {
            pub(crate) fn by_name(&self) -> BTreeMap<String, u64> {
                BTreeMap::from([$(($name.to_owned(), self.$field),)+])
            }
        }
    };
}

counts! {
    programs = "programs",
    covered = "programs of which every image is covered",
    points = "points at which classes were enumerated",
    cut_short = "points with more classes than the limit",
    classes = "images judged as one of each class at least",
    merged = "classes that stand for more than one image",
    steps = "steps",
    refused = "calls refused as the model said",
    deaths = "processes that died",
    failures = "steps in which an operation of the medium failed",
    unknown = "failed calls that may have happened or not",
    sweeps = "programs in which a chosen operation of a step failed",
    together = "concurrent programs, processes in turns and threads",
    cuts = "psync cuts beside storing threads",
    beside = "stores between the stage of a cut and the end of its commit",
    commits = "transactions committed",
    of_commits = "images judged of programs of transactions, also during recovery",
    on_demand = "programs of objects on demand",
    of_demand = "images judged of programs of objects on demand",
    made = "images sampled without regard to classes",
    distinct = "images judged before recovery, each with what was promised by then",
    recovery = "images judged during recovery",
    second = "images judged during recovery of recovery",
    full = "images judged in full",
    violations = "violations",
}

impl Counts {
    pub(crate) fn judged(&self) -> u64 {
        self.distinct + self.recovery + self.second
    }
}
