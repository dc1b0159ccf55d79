//! Views of attached objects: the places of their cells in memory.

use super::checked::Pairs;
use super::marks::Marks;
use indelible_stm::Line;
use indelible_store::format::LINE;
use std::sync::Arc;

/// The memory that an object's cells are in.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// First byte, as transactions have it.
    pub(super) base: usize,
    /// Bytes, whole lines.
    pub(super) len: usize,
    /// Offset of the object's entry.
    pub(super) object: u64,
    /// Lines that are to be published; `None`: each commit tells its own.
    pub(super) marks: Option<Arc<Marks>>,
    /// The place of its words, with check words; `None`: at `base`, without.
    pub(super) pairs: Option<Pairs>,
}

impl View {
    /// The lines of the pool that a line of the view changes, by object and offset: as many as have words that are changed.
    pub(super) fn changed(&self, line: &Line<'_>) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (object, offset, mask) = (self.object, (line.address() - self.base) as u64, line.mask());
        let in_pairs = self.pairs.is_some();
        // With check words, each half of it is a line.
        let halves =
            (0..2).filter(move |half| if in_pairs { (mask >> (32 * half)) as u32 != 0 } else { *half == 0 });
        halves.map(move |half| (object, if in_pairs { 2 * offset + half * LINE } else { offset }))
    }

    /// The object has so many bytes now, as transactions have it. Nobody stores to it meanwhile.
    pub(super) fn lengthen(&mut self, len: usize) {
        self.len = len;
        if let Some(marks) = &self.marks {
            marks.lengthen(len);
        }
        if let Some(pairs) = &mut self.pairs {
            pairs.len = len;
        }
    }

    pub(super) fn marks(&self) -> Option<&Marks> {
        self.marks.as_deref()
    }
}
