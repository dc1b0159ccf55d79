//! The decision of a settle about each page: protect it or leave it unprotected; and with how many calls.

use super::chunks::Chunks;
use super::hot::HotPages;
use super::range::{self, PageRange};

/// Protected pages that one call skips in the time that another call takes.
const NEAR: u64 = 256;

/// Invariant: the runs of `protect`, and those of `left`, are in order and apart.
#[derive(Debug, Default)]
pub(super) struct Reprotection {
    protect: Vec<PageRange>,
    left: Vec<PageRange>,
    /// So many pages changed once more.
    again: usize,
    /// Whether any could have.
    telling: bool,
}

impl Reprotection {
    /// Decides about the pages of an object of `pages` pages, before `hot` knows of the changes.
    pub(super) fn reach(
        &mut self,
        changed: &[PageRange],
        unchanged: &[PageRange],
        hot: &HotPages,
        chunks: &Chunks,
        pages: usize,
    ) {
        self.protect.clear();
        self.left.clear();
        (self.again, self.telling) = (0, !hot.is_empty());
        for page in changed.iter().flat_map(|run| run.within(pages)) {
            if !hot.get(page) {
                range::push(&mut self.protect, 0, page, page + 1);
                continue;
            }
            self.again += 1;
            if chunks.is_known(page) {
                range::push(&mut self.left, 0, page, page + 1);
            } else {
                // In a new chunk none may stay unprotected.
                self.protect.push(chunks.around(page));
            }
        }
        for page in unchanged.iter().flat_map(|run| run.within(pages)) {
            let runs = if hot.get(page) { &mut self.left } else { &mut self.protect };
            range::push(runs, 0, page, page + 1);
        }
        range::normalise(&mut self.protect, 0);
        range::normalise(&mut self.left, 0);
    }

    /// The pages to protect.
    pub(super) fn protect(&self) -> &[PageRange] {
        &self.protect
    }

    /// The same, in groups that one call each can protect: the pages between are protected already, and
    /// few.
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

    /// Whether the next scan should protect the pages it finds; `before`: whether this one did. That spares
    /// `calls` calls; each page that changes again then faults, which takes as long as a call. A change of
    /// policy has its price, too: the unprotected pages have to be found anew.
    pub(super) fn protects(&self, calls: usize, before: bool) -> bool {
        if !self.telling || self.again + calls == 0 {
            return before;
        }
        if before { self.again < 2 * calls } else { self.again < calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::PAGE;

    const CHUNK: usize = 512;

    fn pages(pages: &[usize]) -> Vec<PageRange> {
        pages.iter().map(|page| PageRange::new(*page, *page + 1)).collect()
    }

    /// Of four chunks the first and the second are known.
    fn chunks() -> Chunks {
        let mut chunks = Chunks::new(CHUNK * PAGE);
        chunks.grow(4 * CHUNK);
        chunks.know(&[PageRange::new(0, 2 * CHUNK)]);
        chunks
    }

    fn reach(
        changed: &[usize],
        unchanged: &[usize],
        lately: &[usize],
    ) -> (Reprotection, Vec<Vec<PageRange>>) {
        let (chunks, mut hot, mut plan) = (chunks(), HotPages::default(), Reprotection::default());
        hot.grow(4 * CHUNK);
        hot.push(&pages(lately), 4 * CHUNK);
        plan.reach(&pages(changed), &pages(unchanged), &hot, &chunks, 4 * CHUNK);
        let calls = plan.calls(&chunks).map(<[_]>::to_vec).collect();
        (plan, calls)
    }

    #[test]
    fn recent_pages_are_left_and_others_protected() {
        let (plan, _) = reach(&[1, 5, 6], &[9, 10], &[5, 9]);
        assert_eq!(plan.protect(), [PageRange::new(1, 2), PageRange::new(6, 7), PageRange::new(10, 11)]);
        // In a new chunk that takes protecting all of it.
        let (plan, _) = reach(&[2 * CHUNK + 3], &[], &[2 * CHUNK + 3]);
        assert_eq!(plan.protect(), [PageRange::new(2 * CHUNK, 3 * CHUNK)]);
        assert!(plan.left.is_empty());
    }

    #[test]
    fn one_call_protects_what_no_page_to_be_left_is_between() {
        let (_, calls) = reach(&[1, 40, 90, 100, 200, 600, 1020], &[95, 700], &[95]);
        assert_eq!(calls, [pages(&[1, 40, 90]), pages(&[100, 200]), pages(&[600, 700]), pages(&[1020])]);
        // Nor is anything else touched in a chunk that is new.
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

    #[test]
    fn scans_protect_where_hardly_any_page_changes_again() {
        let protects = |changed: &[usize], lately: &[usize], before| {
            let (plan, calls) = reach(changed, &[], lately);
            plan.protects(calls.len(), before)
        };
        for before in [false, true] {
            assert_eq!(protects(&[1, 2], &[], before), before, "nothing could have changed again");
            assert_eq!(protects(&[], &[7], before), before, "nothing changed");
            assert!(protects(&[1], &[7], before));
            assert!(protects(&[1, 7, 300], &[7], before));
            assert_eq!(protects(&[1, 7], &[7], before), before);
            assert!(!protects(&[1, 7, 8], &[7, 8], before));
        }
    }
}
