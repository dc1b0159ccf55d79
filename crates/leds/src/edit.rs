use std::ops::Range;

#[derive(Clone, Debug, Default)]
pub(crate) struct Edits(Vec<Edit>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Edit {
    range: Range<usize>,
    kind: Kind,
    text: String,
}

/// The order of changes at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Ends come before; the last begun first.
    Close,
    Replace,
    /// Beginnings come last; the first begun first.
    Open,
}

impl Edits {
    pub(crate) fn open(&mut self, at: usize, text: String) {
        self.0.push(Edit { range: at..at, kind: Kind::Open, text });
    }

    pub(crate) fn close(&mut self, at: usize, text: String) {
        self.0.push(Edit { range: at..at, kind: Kind::Close, text });
    }

    pub(crate) fn replace(&mut self, range: Range<usize>, text: String) {
        self.0.push(Edit { range, kind: Kind::Replace, text });
    }

    pub(crate) fn conflict(&self) -> Option<usize> {
        let sorted = self.sorted(0..usize::MAX);
        let mut end = 0;
        for edit in sorted {
            if edit.range.start < end {
                return Some(edit.range.start);
            }
            end = edit.range.end.max(end);
        }
        None
    }

    fn sorted(&self, within: Range<usize>) -> Vec<&Edit> {
        let inside = |edit: &&Edit| edit.range.start >= within.start && edit.range.end <= within.end;
        let mut all: Vec<(usize, &Edit)> = self.0.iter().filter(inside).enumerate().collect();
        all.sort_by_key(|(number, edit)| {
            let turn = if edit.kind == Kind::Close { usize::MAX - number } else { *number };
            (edit.range.start, edit.kind, turn)
        });
        all.into_iter().map(|(_, edit)| edit).collect()
    }

    pub(crate) fn apply(&self, source: &str, within: Range<usize>) -> String {
        let (mut out, mut at) = (String::new(), within.start);
        for edit in self.sorted(within.clone()) {
            if edit.range.start >= at {
                out.push_str(&source[at..edit.range.start]);
                out.push_str(&edit.text);
                at = edit.range.end;
            }
        }
        out.push_str(&source[at..within.end]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_within_each_other_keep_their_order() {
        let source = "a->b->c;";
        let mut edits = Edits::default();
        edits.open(0, "f(".into());
        edits.replace(4..7, ")->c".into());
        edits.open(0, "g(".into());
        edits.replace(1..4, ")->b".into());
        edits.close(7, "]".into());
        edits.close(7, "}".into());
        assert_eq!(edits.apply(source, 0..8), "f(g(a)->b)->c}];");
        assert_eq!(edits.conflict(), None);
        assert_eq!(edits.apply(source, 7..8), "}];");
        edits.replace(6..8, String::new());
        assert_eq!(edits.conflict(), Some(6));
    }
}
