/// A thread's mutant.
#[derive(Clone, Copy, Debug)]
pub struct Selected(#[cfg(feature = "__mutants")] Option<super::Mutant>);

#[cfg(feature = "__mutants")]
impl Selected {
    /// This thread's mutant.
    #[must_use]
    pub fn here() -> Selected {
        Selected(super::selected::current())
    }

    /// Runs `f` on this thread with that mutant.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        super::selected::select(self.0, f)
    }
}

#[cfg(not(feature = "__mutants"))]
impl Selected {
    /// Nothing, without the feature.
    pub fn here() -> Selected {
        Selected()
    }

    /// Runs `f`.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
}
