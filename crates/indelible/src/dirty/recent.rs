//! Which pages changed lately: those are worth leaving unprotected, as comparing a page a few times in
//! vain costs less than a fault and a protection.

use super::bitmap::Bits;
use super::range::PageRange;

/// So many psyncs are lately. A page that changes in every second or third stays unprotected; of pages chosen
/// by chance among many more, hardly any is met again so soon.
const SETTLES: usize = 3;

/// Invariant: `bits` has the pages of all `runs` and no others.
#[derive(Debug, Default)]
pub(super) struct Recent {
    bits: Bits,
    runs: [Vec<PageRange>; SETTLES],
    newest: usize,
}

impl Recent {
    pub(super) fn grow(&mut self, pages: usize) {
        self.bits.grow(pages);
    }

    #[inline]
    pub(super) fn get(&self, page: usize) -> bool {
        self.bits.get(page)
    }

    /// What the last settle said.
    pub(super) fn newest(&self) -> &[PageRange] {
        &self.runs[self.newest]
    }

    /// Takes what changed, of an object of so many pages.
    pub(super) fn push(&mut self, changed: &[PageRange], pages: usize) {
        self.newest = (self.newest + 1) % SETTLES;
        let oldest = &mut self.runs[self.newest];
        for run in oldest.drain(..) {
            run.within(pages).for_each(|page| self.bits.clear(page));
        }
        oldest.extend_from_slice(changed);
        for run in self.runs.iter().flatten() {
            run.within(pages).for_each(|page| self.bits.set(page));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_recent_for_three_settles() {
        let mut recent = Recent::default();
        recent.grow(1000);
        let page = |page| [PageRange::new(page, page + 1)];
        recent.push(&page(7), 1000);
        recent.push(&page(8), 1000);
        recent.push(&page(7), 1000);
        recent.push(&[], 1000);
        assert!(recent.get(7) && recent.get(8), "the newest counts");
        recent.push(&[], 1000);
        assert!(recent.get(7) && !recent.get(8));
        recent.push(&page(9), 1000);
        assert!(!recent.get(7) && recent.get(9));
        assert_eq!(recent.newest(), page(9));
    }
}
