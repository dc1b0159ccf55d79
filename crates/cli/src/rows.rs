//! Lines of a long table, kept until all are known and sorted: reading an object again to print it
//! takes as long as the first time.

use crate::failure::Result;
use std::thread::{Builder, scope};

/// Ends a name and each cell, which have no control characters. It sorts before all others.
const END: u8 = 0;
/// Lines for which another thread is not worth its beginning.
const FEW: usize = 1024;

#[derive(Default)]
pub struct Rows {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

struct Line {
    rank: u64,
    /// Its name in `bytes`, which the cells follow.
    at: usize,
}

impl Rows {
    /// Adds a line, to be sorted by `rank`, then `name`.
    pub fn add(&mut self, rank: u64, name: &str, cells: impl IntoIterator<Item = String>) {
        self.lines.push(Line { rank, at: self.bytes.len() });
        self.put(name);
        cells.into_iter().for_each(|cell| self.put(&cell));
    }

    fn put(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(END);
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Sorts the halves on two threads. The last sort finds two runs, and merges them.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let order = |a: &Line, b: &Line| a.rank.cmp(&b.rank).then_with(|| bytes[a.at..].cmp(&bytes[b.at..]));
        let half = self.lines.len() / 2;
        let (first, second) = self.lines.split_at_mut(half);
        if first.len() >= FEW {
            scope(|scope| {
                // The system may refuse a thread.
                let _ = Builder::new().spawn_scoped(scope, || first.sort_unstable_by(order));
                second.sort_unstable_by(order);
            });
        }
        self.lines.sort_by(order);
    }

    pub fn reverse(&mut self) {
        self.lines.reverse();
    }

    /// Calls `look` for each line in order, with its name and its cells.
    pub fn each<'r>(
        &'r self,
        mut look: impl FnMut(&'r str, &mut dyn Iterator<Item = &'r str>) -> Result,
    ) -> Result {
        self.lines.iter().try_for_each(|line| {
            let texts = self.bytes[line.at..].split(|byte| *byte == END);
            let mut texts = texts.map(|text| std::str::from_utf8(text).unwrap_or_default());
            let name = texts.next().unwrap_or_default();
            look(name, &mut texts)
        })
    }
}
