//! The rule that is broken on a thread, handed on to others.

/// The rule that is broken on a thread, for the threads that it starts.
#[derive(Clone, Copy, Debug)]
pub struct Selected(#[cfg(feature = "__mutants")] Option<super::Mutant>);

#[cfg(feature = "__mutants")]
impl Selected {
    /// As on this thread.
    #[must_use]
    pub fn here() -> Selected {
        Selected(super::selected::current())
    }

    /// Runs `f` on this thread as on that one.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        super::selected::select(self.0, f)
    }
}

#[cfg(not(feature = "__mutants"))]
impl Selected {
    /// As on this thread.
    pub fn here() -> Selected {
        Selected()
    }

    /// Runs `f` on this thread as on that one.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        f()
    }
}
