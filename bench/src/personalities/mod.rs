//! The four Filebench personalities that the papers measure (S0.32), as operations on files by
//! name.
//!
//! Written anew after the published definitions: `fileserver.f` (version 3.0), `varmail.f` (3.0),
//! `webproxy.f` (3.0) and `webserver.f` (3.1) of Filebench, in its folder `workloads`. Taken from
//! there: the order of the operations of a thread's round, entries and how many of them exist at
//! first, mean sizes, mean width of folders, and the meaning of the operations (`appendfilerand`
//! appends 1 byte to its mean size, uniformly; open, delete and stat take any file that exists,
//! create any that does not). Sizes follow a gamma distribution of shape 1.5, as Filebench's do.
//!
//! Differences: entries are fewer where [`Personality::scale`] says it; folders are all as wide as
//! the mean; each thread has entries of its own, so that the operations are the same at any number
//! of threads; every update is durable when it returns, as in the papers (Filebench itself has
//! fsync in VarMail alone).

mod actor;
mod content;
mod meter;
mod random;

pub use actor::{Actor, Journal};
pub use meter::{KINDS, Meter};

use crate::file_backends::Purpose;
use Step::{Append, AppendToLog, Close, Create, Delete, Read, Stat, WriteWhole};

const KIB: usize = 1024;

/// One operation of a round. An open file is closed before another is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Delete,
    /// Also opens it.
    Create,
    WriteWhole,
    Append,
    AppendToLog,
    /// Opens any file: to read, or to read and append.
    Open(Purpose),
    Read,
    Close,
    Stat,
}

const READ: Step = Step::Open(Purpose::Read);
const WRITE: Step = Step::Open(Purpose::Append);

/// See the module.
#[derive(Debug)]
pub struct Personality {
    pub name: &'static str,
    /// Files there may be, as published, all threads together.
    pub published: usize,
    /// The divisor of the original's counts.
    pub scale: usize,
    /// Mean bytes of a file.
    pub mean: usize,
    /// Mean entries of a folder.
    pub width: usize,
    /// Hundredths of the files that exist at first.
    pub filled: usize,
    /// Most bytes of an append.
    pub append: usize,
    /// Whether all threads append to one more file.
    pub log: bool,
    pub steps: &'static [Step],
}

impl Personality {
    /// Files of a run.
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
