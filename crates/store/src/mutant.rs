//! Protocol faults on request, to prove that the tests see them. Without the feature `mutants`, which
//! nothing but tests uses, none is ever on and the compiler drops the places that ask.

/// One rule of the protocol, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The primary changes before the batch is durable.
    ApplyFirst,
    /// The checksum of a batch leaves its data out.
    ShortChecksum,
    /// Batches of an earlier lap are accepted.
    AnyGeneration,
    /// Batches are accepted out of sequence.
    AnySequence,
    /// A checkpoint does not wait for what was applied.
    EarlyCheckpoint,
    /// Recovery does not look into the dead writer's lane.
    LaneForgotten,
    /// Recovery voids the lane before what it replayed is durable.
    EarlyVoid,
    /// Recovery leaves a direct write that no psync published.
    IntentIgnored,
    /// Recovery replays sections of attaches that are long over.
    BindingIgnored,
    /// The superblock is written before the table.
    SuperblockFirst,
    /// A change of the table reaches its pages before it is published.
    TableFirst,
    /// Destroyed space is handed out with what was in it.
    NoZeroing,
    /// What is visible in a lane is taken for durable.
    VisibleIsDurable,
    /// Lines on their way to a primary are forgotten by the progress of the object.
    ProgressForgotten,
    /// Nodes of the table are kept although another process changed it.
    NodesKept,
}

#[cfg(feature = "mutants")]
mod selected {
    use super::Mutant;
    use std::cell::Cell;

    thread_local!(static SELECTED: Cell<Option<Mutant>> = const { Cell::new(None) });

    /// Runs `f` on this thread with the rule broken.
    pub fn with_mutant<R>(mutant: Mutant, f: impl FnOnce() -> R) -> R {
        struct Restore(Option<Mutant>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SELECTED.set(self.0);
            }
        }
        let _restore = Restore(SELECTED.replace(Some(mutant)));
        f()
    }

    impl Mutant {
        /// Whether this rule is broken now.
        pub(crate) fn is_on(self) -> bool {
            SELECTED.get() == Some(self)
        }
    }
}

#[cfg(feature = "mutants")]
pub use selected::with_mutant;

#[cfg(not(feature = "mutants"))]
impl Mutant {
    pub(crate) const fn is_on(self) -> bool {
        false
    }
}
