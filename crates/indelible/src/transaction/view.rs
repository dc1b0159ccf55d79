use super::checked::Pairs;
use super::marks::Marks;
use indelible_stm::pairs::halves;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) base: usize,
    pub(super) len: usize,
    pub(super) object: u64,
    pub(super) marks: Option<Arc<Marks>>,
    pub(super) pairs: Option<Pairs>,
}

impl View {
    pub(super) fn changed(&self, offset: u64, mask: u64) -> impl Iterator<Item = u64> + use<> {
        let in_pairs = self.pairs.map(|_| halves(offset, mask));
        let plain = if in_pairs.is_none() { Some(offset) } else { None };
        in_pairs.into_iter().flatten().chain(plain)
    }

    pub(super) fn bytes(&self) -> usize {
        self.pairs.map_or(self.base, |pairs| pairs.base)
    }

    pub(super) fn lengthen(&mut self, len: usize) {
        if let Some(marks) = &self.marks {
            marks.lengthen(len);
        }
        self.len = if self.pairs.is_some() { len / 2 } else { len };
        if let Some(pairs) = &mut self.pairs {
            pairs.len = self.len;
        }
    }

    pub(super) fn marks(&self) -> Option<&Marks> {
        self.marks.as_deref()
    }
}
