//! Programs against a plain model of the store's promises.
//!
//! A [`Program`] is a list of [`Step`]s of several processes: calls fail in the middle, processes
//! die. [`Program::run`] runs it beside a model of maps of bytes. The [`Promise`] has for every
//! moment the states that a power cut may leave.
//!
//! # What the model says of a call that fails
//!
//! 1. `NoSpace`, `NoRoom` and the like: nothing happened, nothing is poisoned.
//! 2. Any other failure, and a death: the call happened wholly or not at all. From then on there
//!    are two *worlds*; later answers rule out worlds that they contradict. A power cut may leave
//!    the state of any remaining world.
//! 3. An acknowledged call is in all worlds.
//! 4. A failed psync, load, growth or checkpoint either poisons its objects or did not happen. A
//!    poisoned object refuses all of these as `Poisoned` until it is detached. A new attachment is
//!    not poisoned.
//! 5. A call may only fail where a failure was planned, or where its process must yet be told of a
//!    write-back error (`sim`, 7).
//! 6. While a process has poisoned objects attached, it may refuse others of their lane as
//!    `Poisoned`.
//! 7. An unattached object is never `Held`, except as the module `left` states.
//! 8. While an object is held still, any call may be refused as `HeldStill`. Then nothing happened,
//!    but a detach poisons its lane. The holder sees the state of the last psync, or, if that
//!    failed, of either, and sees the same until it releases.
//! 9. A snapshot keeps the state of its object's last psync and is never attached for writing.
//!    While a process writes the object, it may be refused as `Changing`, without effect.
//! 10. A follower sees the state of the object's last psync, and keeps it.
//! 11. A sealed object, its copies and its snapshots are all sealed, with the same bytes. A hold
//!     may be refused, without effect.
//! 12. A repair loses nothing, even if permitted, and is refused as `Held` while others use the
//!     pool.
//!
//! Every step is defined in every state (a store to an unattached object does nothing), so that
//! [`shrink`] may drop any steps.

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

pub const PROCESSES: usize = 3;

pub const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// A step of one process; objects are numbers in [`NAMES`].
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
    /// Processes that have it attached go on.
    Delete {
        object: usize,
    },
    Rename {
        object: usize,
        to: usize,
    },
    /// A snapshot, or a writable copy.
    Copy {
        object: usize,
        to: usize,
        snapshot: bool,
    },
    Rollback {
        object: usize,
        to: usize,
    },
    Merge {
        object: usize,
    },
    Resize {
        object: usize,
        size: u32,
    },
    Attach {
        object: usize,
    },
    Read {
        object: usize,
    },
    Detach {
        object: usize,
    },
    Store {
        object: usize,
        at: u32,
        len: u32,
        value: u8,
    },
    /// Straight into the primary.
    Load {
        object: usize,
        len: u32,
        value: u8,
    },
    /// All attached for writing, as one.
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
    Lengthen,
    /// Releases the one held before.
    Hold {
        object: usize,
    },
    /// Ends the one followed before.
    Follow {
        object: usize,
    },
    LetGo,
    /// The process dies; the next one repairs the pool.
    Repair {
        drop_damaged: bool,
    },
    Die,
    /// The process dies in the step's `nth` operation of this kind, if any.
    DieIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        late: bool,
    },
    /// That operation fails; with `lasts`, the later ones, too.
    FailIn {
        step: Box<Step>,
        kind: OpKind,
        nth: u64,
        fault: Fault,
        lasts: bool,
    },
    /// Unreported.
    WritebackFails {
        no_space: bool,
    },
}

impl Step {
    #[must_use]
    pub fn call(&self) -> &Step {
        match self {
            Step::DieIn { step, .. } | Step::FailIn { step, .. } => step.call(),
            step => step,
        }
    }

    #[must_use]
    pub fn can_fail(&self) -> bool {
        !matches!(self, Step::Die | Step::Store { .. } | Step::WritebackFails { .. })
    }
}

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
