//! The plan of a settle: pages to protect, by policy and chunks, and the calls.

use super::chunks::Chunks;
use super::policy::Policy;
use super::range::{self, PageRange};

/// Protected pages that one call skips in the time of another call.
const NEAR: u64 = 256;

/// Invariant: the runs of `protect`, and those of `left`, are in order and apart.
#[derive(Debug, Default)]
pub(super) struct Reprotection {
    protect: Vec<PageRange>,
    left: Vec<PageRange>,
}

impl Reprotection {
    pub(super) fn reach(
        &mut self,
        changed: &[PageRange],
        unchanged: &[PageRange],
        policy: &mut impl Policy,
        chunks: &Chunks,
        pages: usize,
    ) {
        self.protect.clear();
        self.left.clear();
        for page in changed.iter().flat_map(|run| run.within(pages)) {
            if !policy.leaves(page, true) {
                range::push(&mut self.protect, 0, page, page + 1);
            } else if chunks.is_known(page) {
                range::push(&mut self.left, 0, page, page + 1);
            } else {
                self.protect.push(chunks.around(page));
            }
        }
        for page in unchanged.iter().flat_map(|run| run.within(pages)) {
            let runs = if policy.leaves(page, false) { &mut self.left } else { &mut self.protect };
            range::push(runs, 0, page, page + 1);
        }
        range::normalise(&mut self.protect, 0);
        range::normalise(&mut self.left, 0);
    }

    pub(super) fn protect(&self) -> &[PageRange] {
        &self.protect
    }

    pub(super) fn left(&self) -> &[PageRange] {
        &self.left
    }

    pub(super) fn calls<'a>(&'a self, chunks: &'a Chunks) -> impl Iterator<Item = &'a [PageRange]> + 'a {
        let known = |run: &PageRange| {
            let (first, last) = (run.start as usize, run.end() as usize - 1);
            run.count <= NEAR && chunks.is_known(first) && chunks.is_known(last)
        };
        let mut left = self.left.iter().peekable();
        self.protect.chunk_by(move |a, b| {
            while left.next_if(|run| run.start < a.end()).is_some() {}
            b.start - a.end() <= NEAR
                && left.peek().is_none_or(|run| run.start >= b.start)
                && known(a)
                && known(b)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::PAGE;
    use std::collections::BTreeSet;

    const CHUNK: usize = 512;

    fn pages(pages: &[usize]) -> Vec<PageRange> {
        pages.iter().map(|page| PageRange::new(*page, *page + 1)).collect()
    }

    fn chunks() -> Chunks {
        let mut chunks = Chunks::new(CHUNK * PAGE);
        chunks.grow(4 * CHUNK);
        chunks.know(&[PageRange::new(0, 2 * CHUNK)]);
        chunks
    }

    struct Leaves(BTreeSet<usize>);

    impl Policy for Leaves {
        fn grow(&mut self, _: usize) {}

        fn leaves(&mut self, page: usize, _: bool) -> bool {
            self.0.contains(&page)
        }
    }

    fn reach(changed: &[usize], unchanged: &[usize], left: &[usize]) -> (Reprotection, Vec<Vec<PageRange>>) {
        let (chunks, mut plan) = (chunks(), Reprotection::default());
        let mut policy = Leaves(left.iter().copied().collect());
        plan.reach(&pages(changed), &pages(unchanged), &mut policy, &chunks, 4 * CHUNK);
        let calls = plan.calls(&chunks).map(<[_]>::to_vec).collect();
        (plan, calls)
    }

    #[test]
    fn pages_are_left_as_advised_and_others_protected() {
        let (plan, _) = reach(&[1, 5, 6], &[9, 10], &[5, 9]);
        assert_eq!(plan.protect(), [PageRange::new(1, 2), PageRange::new(6, 7), PageRange::new(10, 11)]);
        let (plan, _) = reach(&[2 * CHUNK + 3], &[], &[2 * CHUNK + 3]);
        assert_eq!(plan.protect(), [PageRange::new(2 * CHUNK, 3 * CHUNK)]);
        assert!(plan.left.is_empty());
    }

    #[test]
    fn one_call_protects_what_no_page_to_be_left_is_between() {
        let (_, calls) = reach(&[1, 40, 90, 100, 200, 600, 1020], &[95, 700], &[95]);
        assert_eq!(calls, [pages(&[1, 40, 90]), pages(&[100, 200]), pages(&[600, 700]), pages(&[1020])]);
        let (_, calls) = reach(&[CHUNK - 1, CHUNK, 2 * CHUNK - 2, 2 * CHUNK + 1, 2 * CHUNK + 3], &[], &[]);
        assert_eq!(
            calls,
            [
                vec![PageRange::new(CHUNK - 1, CHUNK + 1)],
                pages(&[2 * CHUNK - 2]),
                pages(&[2 * CHUNK + 1]),
                pages(&[2 * CHUNK + 3])
            ]
        );
    }
}
