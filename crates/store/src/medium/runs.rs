use std::ops::Range;

#[derive(Default)]
pub(crate) struct Runs(Vec<Range<u64>>);

impl Runs {
    pub(crate) fn add(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    pub(crate) fn joined(mut self) -> Vec<Range<u64>> {
        self.0.sort_unstable_by_key(|range| range.start);
        self.0.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        self.0
    }
}
