#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageRange {
    pub(crate) start: u64,
    pub(crate) count: u64,
}

impl PageRange {
    pub(crate) fn new(start: usize, end: usize) -> PageRange {
        PageRange { start: start as u64, count: (end - start) as u64 }
    }

    pub(crate) fn end(self) -> u64 {
        self.start + self.count
    }

    pub(super) fn within(self, pages: usize) -> std::ops::Range<usize> {
        let clip = |page: u64| usize::try_from(page).unwrap_or(usize::MAX).min(pages);
        let start = clip(self.start);
        start..clip(self.start.saturating_add(self.count)).max(start)
    }
}

#[inline]
pub(super) fn push(out: &mut Vec<PageRange>, kept: usize, start: usize, end: usize) {
    if start >= end {
        return;
    }
    if out.len() > kept
        && let Some(last) = out.last_mut()
        && last.end() == start as u64
    {
        last.count += (end - start) as u64;
        return;
    }
    out.push(PageRange::new(start, end));
}

pub(super) fn normalise(out: &mut Vec<PageRange>, kept: usize) {
    out[kept..].sort_unstable();
    let mut last = kept;
    for next in kept + 1..out.len() {
        let run = out[next];
        if run.start <= out[last].end() {
            out[last].count = run.end().max(out[last].end()) - out[last].start;
        } else {
            last += 1;
            out[last] = run;
        }
    }
    if out.len() > kept {
        out.truncate(last + 1);
    }
}

#[inline]
pub(super) fn cover(all: &[PageRange], runs: &[PageRange]) -> bool {
    let mut next = runs.first().map_or(0, |run| all.partition_point(|one| one.end() <= run.start));
    runs.iter().all(|run| {
        while all.get(next).is_some_and(|one| one.end() <= run.start) {
            next += 1;
        }
        all.get(next).is_some_and(|one| one.start <= run.start && run.end() <= one.end())
    })
}

pub(super) fn without(runs: &[PageRange], holes: &[PageRange]) -> Vec<PageRange> {
    let mut out = Vec::with_capacity(runs.len());
    let mut next = runs.first().map_or(0, |run| holes.partition_point(|hole| hole.end() <= run.start));
    for run in runs {
        let mut at = run.start;
        while at < run.end() {
            while holes.get(next).is_some_and(|hole| hole.end() <= at) {
                next += 1;
            }
            let (from, to) = holes.get(next).map_or((u64::MAX, 0), |hole| (hole.start, hole.end()));
            let end = run.end().min(from.max(at));
            if at < end {
                out.push(PageRange { start: at, count: end - at });
            }
            at = if end < run.end() { to } else { end };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_taken_out() {
        let run = |start, end| PageRange::new(start, end);
        let runs = [run(2, 5), run(8, 20), run(30, 31)];
        assert_eq!(without(&runs, &[]), runs);
        assert_eq!(without(&[], &runs), []);
        assert_eq!(without(&runs, &[run(0, 40)]), []);
        assert_eq!(
            without(&runs, &[run(0, 3), run(4, 9), run(10, 12), run(19, 31)]),
            [run(3, 4), run(9, 10), run(12, 19)]
        );
        assert_eq!(without(&runs, &[run(5, 8), run(20, 30), run(31, 99)]), runs);
        assert_eq!(without(&runs, &[run(2, 5), run(30, 31)]), [run(8, 20)]);
        assert!(
            cover(&runs, &[]) && cover(&runs, &runs) && cover(&runs, &[run(3, 5), run(8, 9), run(19, 20)])
        );
        for outside in [run(1, 3), run(4, 6), run(5, 8), run(7, 21), run(31, 32)] {
            assert!(!cover(&runs, &[run(2, 3), outside]), "{outside:?}");
        }
    }

    #[test]
    fn runs_are_joined_and_what_was_there_is_left_alone() {
        let run = |start, count| PageRange { start, count };
        let mut out = vec![run(9, 9), run(7, 2), run(3, 1), run(4, 3), run(20, 1), run(8, 4)];
        normalise(&mut out, 1);
        assert_eq!(out, [run(9, 9), run(3, 9), run(20, 1)]);
        let mut none = vec![run(1, 1)];
        normalise(&mut none, 1);
        assert_eq!(none, [run(1, 1)]);
        push(&mut out, 1, 21, 22);
        push(&mut out, 1, 30, 30);
        assert_eq!(out[2..], [run(20, 2)]);
    }
}
