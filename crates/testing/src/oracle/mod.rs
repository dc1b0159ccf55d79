//! Programs against a plain model of the store's promises.
//!
//! A [`Program`] is a list of [`Step`]s: several processes create, attach, store to, psync, grow,
//! checkpoint, detach, rename, resize and destroy a handful of objects; calls fail in the middle,
//! and their callers go on; and now and then a process dies, between two steps or in the middle of
//! one. [`Program::run`] takes it through a pool on a simulated medium and, next to it, through a
//! model of mere maps of bytes: the model predicts whether each call succeeds and the bytes that
//! each attach shows. The result is a [`Promise`]: for every moment of the log the states that a
//! power cut at that moment may leave.
//!
//! # What the model says of a call that fails
//!
//! 1. `NoSpace`, `NoRoom` and the like: nothing happened, and nothing is poisoned by it.
//! 2. Any other failure, and the death of the caller: the call happened wholly or not at all,
//!    unknown which. From then on there are two *worlds*; each later answer and each content that
//!    is shown rules out those that it contradicts. A power cut may leave the state of any
//!    remaining world.
//! 3. An acknowledged call is in all worlds.
//! 4. A psync, load, growth or checkpoint that fails either poisons its objects, or did not happen.
//!    A poisoned object refuses all of these as `Poisoned` until it is detached. A new attachment
//!    is not poisoned.
//! 5. A call may only fail where a failure was planned in it, or where its process has yet to be
//!    told of a write-back error of the file (`sim`, 7).
//! 6. While a process keeps poisoned objects attached, it may refuse others of their lane as
//!    `Poisoned`.
//! 7. An unattached object is never `Held`, with one exception, of which the module `left` is the
//!    whole rule: a process whose attach or detach of it failed may keep the lane that the object
//!    is bound to, for as long as it has another object attached for writing.
//! 8. While an object is held still, any call may be refused as `HeldStill`. Then nothing happened,
//!    but for a detach, which poisons its lane. The holder sees the state of the last psync, or, if
//!    that failed, of either; and it sees the same until it lets go.
//! 9. A snapshot holds the state of its object's last psync, whatever becomes of the two, and is
//!    never attached for writing. It may be refused as `Changing`, as if it had not been asked for,
//!    while a process writes the object.
//! 10. A process that follows an object sees the state of its last psync, and goes on seeing that.
//! 11. A sealed object, and each copy and snapshot of it, is all that, and has no other bytes. It
//!     may refuse to be held still, as if that had not been asked for.
//! 12. A repair loses nothing, also if it may, and is refused as `Held` while others use the pool.
//!
//! Every step is defined in every state (storing to an unattached object does nothing), so that any
//! part of a program is a program: [`shrink`] relies on that.

mod cuts;
mod failing;
mod follow;
mod hold;
mod left;
mod model;
mod pools;
mod process;
mod random;
mod run;
mod short;
mod shrink;
mod together;
mod transactions;

pub use cuts::{Cuts, Made};
pub use failing::failing;
pub use pools::{Start, starts};
pub use random::random;
pub use run::{Promise, Wrong};
pub use short::short;
pub use shrink::{Shrinks, shrink};
pub use together::{How, Shared, Together};
pub use transactions::{Committed, Transactions};

use crate::sim::{Fault, OpKind};
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
    CreateSealed {
        object: usize,
        size: u32,
    },
    Destroy {
        object: usize,
    },
    /// Processes that have it attached go on with it.
    Delete {
        object: usize,
    },
    Rename {
        object: usize,
        to: usize,
    },
    /// A snapshot of an object, attached or not, or a copy of it that can be written to.
    Copy {
        object: usize,
        to: usize,
        snapshot: bool,
    },
    /// Gives an unattached object the contents of a snapshot.
    Rollback {
        object: usize,
        to: usize,
    },
    /// Merges the bases that only this object needs.
    Merge {
        object: usize,
    },
    /// Resizes an unattached object.
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
    /// Psyncs those of the objects that are attached for writing, as one.
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
    /// Makes the pool longer.
    Lengthen,
    /// Holds an object still that a process has attached for writing, and looks. An object that it
    /// held before goes on.
    Hold {
        object: usize,
    },
    /// Attaches the state of an object's last psync, beside any writer, and looks; once more at the
    /// one that it followed before.
    Follow {
        object: usize,
    },
    /// Looks at the object that it holds once more, and lets it go on.
    LetGo,
    /// The process dies, and the next one repairs the pool before it does anything else.
    Repair {
        drop_damaged: bool,
    },
    /// The process dies between two steps. Another takes its place.
    Die,
    /// The process dies in the `nth` operation of this kind that the step makes, if it makes so
    /// many; then another finds out what became of it.
    DieIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        late: bool,
    },
    /// The `nth` operation of this kind that the step makes fails, if it makes so many; if it
    /// `lasts`, those behind it in this step fail, too.
    FailIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        fault: Fault,
        lasts: bool,
    },
    /// The system fails to write pending pages back, for want of space or otherwise, and reports it
    /// to no process yet.
    WritebackFails {
        no_space: bool,
    },
}

impl Step {
    /// The call that is made, without what befalls it.
    #[must_use]
    pub fn call(&self) -> &Step {
        match self {
            Step::DieIn { step, .. } | Step::FailIn { step, .. } => step.call(),
            step => step,
        }
    }

    /// Whether it calls the store, which may then fail.
    #[must_use]
    pub fn can_fail(&self) -> bool {
        !matches!(self, Step::Die | Step::Store { .. } | Step::WritebackFails { .. })
    }
}

/// Steps of the processes, in turn: (process, step).
#[derive(Clone, PartialEq, Eq)]
pub struct Program<S = Step>(pub Vec<(usize, S)>);

impl<S> Default for Program<S> {
    fn default() -> Self {
        Program(Vec::new())
    }
}

impl<S: fmt::Debug> fmt::Debug for Program<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(process, step)| writeln!(f, "  process {process}: {step:?}"))
    }
}
