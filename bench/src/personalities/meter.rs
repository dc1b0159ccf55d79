use super::Step;
use crate::file_backends::Purpose;
use std::time::Duration;

pub const KINDS: [&str; 8] =
    ["create", "update", "open to append", "open to read", "read", "close", "delete", "stat"];

#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    spent: [Duration; KINDS.len()],
    count: [u64; KINDS.len()],
}

impl Meter {
    pub fn add(&mut self, step: Step, took: Duration) {
        let kind = match step {
            Step::Create => 0,
            Step::WriteWhole | Step::Append | Step::AppendToLog => 1,
            Step::Open(Purpose::Append) => 2,
            Step::Open(Purpose::Read) => 3,
            Step::Read => 4,
            Step::Close => 5,
            Step::Delete => 6,
            Step::Stat => 7,
        };
        self.spent[kind] += took;
        self.count[kind] += 1;
    }

    pub fn mean(&self, kind: usize) -> Option<f64> {
        (self.count[kind] > 0).then(|| self.spent[kind].as_nanos() as f64 / self.count[kind] as f64)
    }

    pub fn operations(&self) -> u64 {
        self.count.iter().sum()
    }
}

impl std::ops::AddAssign for Meter {
    fn add_assign(&mut self, other: Meter) {
        for kind in 0..KINDS.len() {
            self.spent[kind] += other.spent[kind];
            self.count[kind] += other.count[kind];
        }
    }
}
