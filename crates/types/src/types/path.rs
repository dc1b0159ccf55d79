//! The path from a root to a value, in a program's notation: `accounts.values[3].owner`.

use std::fmt;
use std::rc::Rc;

#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'t> {
    Root(&'t str),
    Field(&'t str),
    Variant(&'t str),
    Index(u64),
    Key(u64),
    Value(u64),
    Inside,
}

#[derive(Clone, Copy, Debug)]
pub struct Path<'p, 't> {
    before: Before<'p, 't>,
    step: Step<'t>,
}

#[derive(Clone, Copy, Debug)]
enum Before<'p, 't> {
    Nothing,
    Stack(&'p Path<'p, 't>),
    Kept(&'p Rc<Kept<'t>>),
}

/// A long path keeps its end only, so that long lists take no more memory than short ones.
#[derive(Debug)]
pub(super) struct Kept<'t> {
    before: Option<Rc<Kept<'t>>>,
    step: Step<'t>,
    root: &'t str,
    steps: u64,
    len: usize,
}

const MOST: usize = 64;
const LAST: usize = 24;

impl<'t> Kept<'t> {
    fn then(before: Rc<Kept<'t>>, step: Step<'t>) -> Rc<Kept<'t>> {
        let before = if before.len < MOST { before } else { before.end() };
        let (root, steps, len) = (before.root, before.steps + step.shown(), before.len + 1);
        Rc::new(Kept { before: Some(before), step, root, steps, len })
    }

    fn end(&self) -> Rc<Kept<'t>> {
        let last: Vec<&Kept<'t>> =
            std::iter::successors(Some(self), |kept| kept.before.as_deref()).take(LAST).collect();
        let first = Rc::new(Kept { before: None, len: 1, ..*last[LAST - 1] });
        last[..LAST - 1].iter().rev().fold(first, |before, kept| {
            let len = before.len + 1;
            Rc::new(Kept { before: Some(before), len, ..**kept })
        })
    }
}

impl Step<'_> {
    fn shown(&self) -> u64 {
        u64::from(!matches!(self, Step::Inside))
    }
}

impl<'p, 't> Path<'p, 't> {
    pub(super) fn root(name: &'t str) -> Self {
        Path { before: Before::Nothing, step: Step::Root(name) }
    }

    pub(super) fn then(&'p self, step: Step<'t>) -> Path<'p, 't> {
        Path { before: Before::Stack(self), step }
    }

    pub(super) fn behind(kept: &'p Rc<Kept<'t>>, step: Step<'t>) -> Path<'p, 't> {
        Path { before: Before::Kept(kept), step }
    }

    pub(super) fn keep(&self) -> Rc<Kept<'t>> {
        match (self.before, self.step) {
            (Before::Stack(path), step) => Kept::then(path.keep(), step),
            (Before::Kept(kept), step) => Kept::then(kept.clone(), step),
            (Before::Nothing, step) => {
                let root = if let Step::Root(name) = step { name } else { "" };
                Rc::new(Kept { before: None, step, root, steps: 0, len: 1 })
            }
        }
    }
}

impl fmt::Display for Path<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = vec![self.step];
        let (mut before, mut kept) = (self.before, None);
        loop {
            before = match before {
                Before::Stack(path) => {
                    steps.push(path.step);
                    path.before
                }
                Before::Kept(way) => {
                    kept = Some(way);
                    break;
                }
                Before::Nothing => break,
            };
        }
        let mut hidden = kept.map_or(0, |way| way.steps);
        let root = kept.map(|way| way.root);
        while let Some(way) = kept {
            hidden = hidden.saturating_sub(way.step.shown());
            steps.push(way.step);
            kept = way.before.as_ref();
        }
        if let (Some(root), 1..) = (root, hidden) {
            write!(f, "{root}.<{hidden} steps>")?;
        }
        steps.iter().rev().try_for_each(|step| match step {
            Step::Root(name) => f.write_str(name),
            Step::Field(name) | Step::Variant(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(index) => write!(f, ".keys[{index}]"),
            Step::Value(index) => write!(f, ".values[{index}]"),
            Step::Inside => Ok(()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Path, Step};

    #[test]
    fn a_long_way_is_shown_by_its_end() {
        let mut kept = Path::root("list").keep();
        for _ in 0..20 {
            kept = Path::behind(&kept, Step::Field("next")).then(Step::Inside).keep();
        }
        assert_eq!(
            Path::behind(&kept, Step::Field("value")).to_string(),
            format!("list{}.value", ".next".repeat(20))
        );
        for _ in 20..1_000_000 {
            kept = Path::behind(&kept, Step::Field("next")).then(Step::Inside).keep();
            assert!(kept.len <= MOST + 1);
        }
        let text = Path::behind(&kept, Step::Field("value")).to_string();
        let shown = text.matches(".next").count();
        assert_eq!(text, format!("list.<{} steps>{}.value", 1_000_000 - shown, ".next".repeat(shown)));
        assert!((10..MOST).contains(&shown), "{shown}");
    }
}
