//! The way from a root to a value, as a program would write it: `accounts.values[3].owner`.

use std::fmt;
use std::rc::Rc;

/// One step of the way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'t> {
    Root(&'t str),
    Field(&'t str),
    Variant(&'t str),
    Index(u64),
    Key(u64),
    Value(u64),
    /// To the value that a box or a lock has.
    Inside,
}

/// A value, by the way to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'p, 't> {
    before: Before<'p, 't>,
    step: Step<'t>,
}

#[derive(Clone, Copy, Debug)]
enum Before<'p, 't> {
    Nothing,
    Stack(&'p Path<'p, 't>),
    Kept(&'p Rc<Kept<'t>>),
}

/// A way that is kept for later.
#[derive(Debug)]
pub(super) struct Kept<'t> {
    before: Option<Rc<Kept<'t>>>,
    step: Step<'t>,
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
        let before = match self.before {
            Before::Nothing => None,
            Before::Stack(path) => Some(path.keep()),
            Before::Kept(kept) => Some(kept.clone()),
        };
        Rc::new(Kept { before, step: self.step })
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
        while let Some(way) = kept {
            steps.push(way.step);
            kept = way.before.as_ref();
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
