//! Pages as they were before a transaction.
//!
//! While commits are owed, an object's revert would undo them, too: a transaction is undone from
//! here instead.

use indelible::Object;
use std::collections::BTreeMap;
use std::ops::Range;

const PAGE: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Undo(BTreeMap<usize, Box<[u8]>>);

impl Undo {
    pub(crate) fn keep(&mut self, object: &[u8], bytes: Range<usize>) {
        let first = bytes.start - bytes.start % PAGE;
        for at in (first..bytes.end.min(object.len())).step_by(PAGE) {
            self.0.entry(at).or_insert_with(|| object[at..object.len().min(at + PAGE)].into());
        }
    }

    pub(crate) fn restore(self, object: &mut Object) {
        for (at, page) in self.0 {
            object.range_mut(at..at + page.len()).copy_from_slice(&page);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
