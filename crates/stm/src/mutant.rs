//! Rules broken on request, to prove that tests notice. Without the feature `__mutants`, for tests
//! alone, none is on and the compiler drops the checks.

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A transaction commits with invalid reads.
    Unvalidated,
    /// A stripe is released before the changes are in memory.
    ReleasedFirst,
    /// Commits do not advance the clock.
    ClockStopped,
    /// A transaction that sees a newer line keeps its earlier reads.
    DoomedGoesOn,
    /// A damaged word becomes the first of several possible values.
    FirstCandidate,
    /// Undone changes in place leave the stripe's number as it was.
    UndoneUnnoticed,
}

#[cfg(feature = "__mutants")]
impl Mutant {
    /// All rules.
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
