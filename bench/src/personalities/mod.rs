//! The four Filebench personalities of the papers (S0.32), as operations on named files.
//!
//! From Filebench's `workloads`: `fileserver.f` (version 3.0), `varmail.f` (3.0), `webproxy.f`
//! (3.0) and `webserver.f` (3.1). Equal: the order of a round's operations, entries and initial
//! files, mean sizes and folder width, and the meaning of operations (`appendfilerand` appends 1
//! byte to its mean size, uniformly; open, delete and stat take any existing file). Sizes follow a
//! gamma distribution of shape 1.5.
//!
//! Different: fewer entries by [`Personality::scale`]; all folders have the mean width; each thread
//! has its own entries; every update is durable, as in the papers (Filebench has fsync in VarMail
//! alone).

mod actor;
mod content;
mod meter;
mod random;

pub use actor::{Actor, Journal};
pub use meter::{KINDS, Meter};

use crate::file_backends::Purpose;
use Step::{Append, AppendToLog, Close, Create, Delete, Read, Stat, WriteWhole};

const KIB: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Delete,
    Create,
    WriteWhole,
    Append,
    AppendToLog,
    Open(Purpose),
    Read,
    Close,
    Stat,
}

const READ: Step = Step::Open(Purpose::Read);
const WRITE: Step = Step::Open(Purpose::Append);

#[derive(Debug)]
pub struct Personality {
    pub name: &'static str,
    pub published: usize,
    pub scale: usize,
    pub mean: usize,
    pub width: usize,
    /// Percentage of initial files.
    pub filled: usize,
    pub append: usize,
    pub log: bool,
    pub steps: &'static [Step],
}

impl Personality {
    pub fn files(&self) -> usize {
        self.published / self.scale
    }
}

pub const ALL: [Personality; 4] = [
    Personality {
        name: "FileServer",
        published: 10_000,
        scale: 10,
        mean: 128 * KIB,
        width: 20,
        filled: 80,
        append: 16 * KIB,
        log: false,
        steps: &[Create, WriteWhole, Close, WRITE, Append, Close, READ, Read, Close, Delete, Stat],
    },
    Personality {
        name: "VarMail",
        published: 1_000,
        scale: 1,
        mean: 16 * KIB,
        width: 1_000_000,
        filled: 80,
        append: 16 * KIB,
        log: false,
        steps: &[Delete, Create, Append, Close, WRITE, Read, Append, Close, READ, Read, Close],
    },
    Personality {
        name: "WebProxy",
        published: 10_000,
        scale: 10,
        mean: 16 * KIB,
        width: 1_000_000,
        filled: 80,
        append: 16 * KIB,
        log: false,
        #[rustfmt::skip]
        steps: &[
            Delete, Create, Append, Close,
            READ, Read, Close, READ, Read, Close, READ, Read, Close, READ, Read, Close, READ, Read, Close,
        ],
    },
    Personality {
        name: "WebServer",
        published: 1_000,
        scale: 1,
        mean: 16 * KIB,
        width: 20,
        filled: 100,
        append: 16 * KIB,
        log: true,
        #[rustfmt::skip]
        steps: &[
            READ, Read, Close, READ, Read, Close, READ, Read, Close, READ, Read, Close, READ, Read, Close,
            READ, Read, Close, READ, Read, Close, READ, Read, Close, READ, Read, Close, READ, Read, Close,
            AppendToLog,
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_are_the_share_that_the_papers_give() {
        for (personality, papers) in ALL.iter().zip([67.0, 50.0, 16.0, 9.0]) {
            let count = |wanted: &[Step]| {
                personality.steps.iter().filter(|step| wanted.contains(step)).count() as f64
            };
            let updates = count(&[WriteWhole, Append, AppendToLog]);
            let share = 100.0 * updates / (updates + count(&[Read]));
            assert!((share - papers).abs() < 1.0, "{}: {share}", personality.name);
        }
    }
}
