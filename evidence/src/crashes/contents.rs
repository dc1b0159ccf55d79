use std::collections::{BTreeMap, HashSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Before,
    During,
    After,
}

#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Contents([HashSet<u64>; 3]);

impl Contents {
    pub(crate) fn add(&mut self, phase: Phase, digest: u64) {
        self.0[phase as usize].insert(digest);
    }

    pub(crate) fn join(&mut self, other: Contents) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            mine.extend(theirs);
        }
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let [before, during, after] = &self.0;
        let all: HashSet<&u64> = before.iter().chain(during).chain(after).collect();
        BTreeMap::from([
            ("contents, all different".to_owned(), all.len() as u64),
            ("contents before recovery".to_owned(), before.len() as u64),
            ("contents during recovery".to_owned(), during.len() as u64),
            ("contents when recovery was done".to_owned(), after.len() as u64),
        ])
    }
}
