//! Random programs against a plain model of what the store promises.
//!
//! A [`Program`] is a list of [`Step`]s: several processes create, attach, store to, psync, grow, checkpoint,
//! detach, rename, resize and destroy a handful of objects, and now and then one of them dies, between two
//! steps or in the middle of one. [`Program::run`] takes it through a pool on a simulated medium and, next
//! to it, through a model that is nothing but maps of bytes: whether each call succeeds and what each
//! attach shows must be what the model says. What it leaves is a [`Promise`]: for every moment of the log the
//! states that a power cut at that moment may leave, the one after the last completed step or the one
//! that the step in flight leads to.
//!
//! Every step is defined in every state (storing to what is not attached does nothing), so that any part
//! of a program is a program: that is what [`shrink`] relies on.

mod model;
mod pools;
mod random;
mod run;
mod short;
mod shrink;

pub use pools::{Start, starts};
pub use random::random;
pub use run::{Promise, Wrong};
pub use short::short;
pub use shrink::shrink;

use crate::sim::OpKind;
use std::fmt;

/// Processes that a program has.
pub const PROCESSES: usize = 3;

/// Names of the objects that a program has, by number.
pub const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// One step of one process; objects go by their number in [`NAMES`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Step {
    Create {
        object: usize,
        size: u32,
        sparse: bool,
    },
    Destroy {
        object: usize,
    },
    Rename {
        object: usize,
        to: usize,
    },
    /// Of an object nobody has attached.
    Resize {
        object: usize,
        size: u32,
    },
    /// For writing.
    Attach {
        object: usize,
    },
    /// Attaches for reading, looks, and stays attached.
    Read {
        object: usize,
    },
    Detach {
        object: usize,
    },
    /// Plain stores: they are in no psync yet.
    Store {
        object: usize,
        at: u32,
        len: u32,
        value: u8,
    },
    /// Loads what no psync ever covered, straight into the primary.
    Load {
        object: usize,
        len: u32,
        value: u8,
    },
    /// Of those of the objects that are attached for writing, as one.
    Psync {
        objects: Vec<usize>,
    },
    Grow {
        object: usize,
        size: u32,
    },
    Checkpoint {
        object: usize,
    },
    /// The process dies between two steps. Another takes its place.
    Die,
    /// The process dies in the `nth` operation of this kind that the step makes, if it makes so many;
    /// then another finds out what became of it.
    DieIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        late: bool,
    },
}

impl Step {
    /// The objects it names.
    pub(super) fn objects(&self) -> Vec<usize> {
        match *self {
            Step::Create { object, .. }
            | Step::Destroy { object }
            | Step::Resize { object, .. }
            | Step::Attach { object }
            | Step::Read { object }
            | Step::Detach { object }
            | Step::Store { object, .. }
            | Step::Load { object, .. }
            | Step::Grow { object, .. }
            | Step::Checkpoint { object } => vec![object],
            Step::Rename { object, to } => vec![object, to],
            Step::Psync { ref objects } => objects.clone(),
            Step::Die => vec![],
            Step::DieIn { ref step, .. } => step.objects(),
        }
    }
}

/// What processes do, in turn: (process, step).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Program(pub Vec<(usize, Step)>);

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(process, step)| writeln!(f, "  process {process}: {step:?}"))
    }
}
