use std::sync::Arc;

/// Granularity: no tear unit is smaller.
pub(super) const WORD: u64 = 8;

pub(super) type Words = Arc<[(u64, u32)]>;

pub(super) struct Watch {
    words: Words,
    overwritten: Vec<bool>,
    met: Vec<bool>,
    touched: Vec<u32>,
}

impl Watch {
    pub(super) fn new(words: Words, decisions: usize) -> Self {
        Watch {
            overwritten: vec![false; words.len()],
            met: vec![false; decisions],
            touched: Vec::new(),
            words,
        }
    }

    pub(super) fn touched(&self) -> &[u32] {
        &self.touched
    }

    fn among(&self, first: u64, end: u64) -> std::ops::Range<usize> {
        let start = self.words.partition_point(|(word, _)| *word < first);
        let len = self.words[start..].partition_point(|(word, _)| *word < end);
        start..start + len
    }

    pub(super) fn read(&mut self, offset: u64, len: u64) {
        for at in self.among(offset / WORD, (offset + len).div_ceil(WORD)) {
            let decision = self.words[at].1;
            if !self.overwritten[at] && !std::mem::replace(&mut self.met[decision as usize], true) {
                self.touched.push(decision);
            }
        }
    }

    pub(super) fn written(&mut self, offset: u64, len: u64) {
        let words = self.among(offset.div_ceil(WORD), (offset + len) / WORD);
        self.overwritten[words].fill(true);
    }
}
