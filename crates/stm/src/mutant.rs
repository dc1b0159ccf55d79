//! Rules broken on request, to prove that the tests see them. Without the feature `__mutants`,
//! which nothing but tests uses, none is ever on and the compiler drops the places that ask.

/// One rule, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A transaction commits whether or not its reads are still valid.
    Unvalidated,
    /// A stripe is released before the changes of its lines are in memory.
    ReleasedFirst,
    /// Commits do not advance the clock.
    ClockStopped,
    /// A transaction that sees a line newer than its snapshot goes on with its earlier reads.
    DoomedGoesOn,
    /// The first of several possible former values of a damaged word is taken.
    FirstCandidate,
    /// A stripe whose changes in place were undone is as it was before them.
    UndoneUnnoticed,
}

#[cfg(feature = "__mutants")]
impl Mutant {
    /// All of them.
    #[must_use]
    pub fn all() -> [Mutant; 6] {
        [
            Mutant::Unvalidated,
            Mutant::ReleasedFirst,
            Mutant::ClockStopped,
            Mutant::DoomedGoesOn,
            Mutant::FirstCandidate,
            Mutant::UndoneUnnoticed,
        ]
    }
}

/// The rule that an [`Stm`](crate::Stm) breaks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broken(#[cfg(feature = "__mutants")] pub(crate) Option<Mutant>);

impl Broken {
    #[inline]
    pub(crate) fn is(self, mutant: Mutant) -> bool {
        #[cfg(feature = "__mutants")]
        return self.0 == Some(mutant);
        #[cfg(not(feature = "__mutants"))]
        {
            let _ = mutant;
            false
        }
    }
}
