use super::Mutant;
use std::cell::Cell;
use std::sync::OnceLock;

thread_local!(static SELECTED: Cell<Option<Mutant>> = const { Cell::new(None) });

/// Runs `f` on this thread with a mutant.
pub fn with_mutant<R>(mutant: Mutant, f: impl FnOnce() -> R) -> R {
    select(Some(mutant), f)
}

pub(super) fn current() -> Option<Mutant> {
    SELECTED.get()
}

pub(super) fn select<R>(mutant: Option<Mutant>, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<Mutant>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SELECTED.set(self.0);
        }
    }
    let _restore = Restore(SELECTED.replace(mutant));
    f()
}

/// The mutant of the environment variable `INDELIBLE_MUTANT`, for tests of whole programs.
///
/// # Panics
/// If there is no such mutant.
fn of_the_process() -> Option<Mutant> {
    static CHOSEN: OnceLock<Option<Mutant>> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var("INDELIBLE_MUTANT").ok()?;
        let found = Mutant::all().find(|mutant| format!("{mutant:?}") == name);
        Some(found.unwrap_or_else(|| panic!("INDELIBLE_MUTANT={name}: there is no such mutant")))
    })
}

impl Mutant {
    /// Whether the mutant is on.
    #[must_use]
    #[inline]
    pub fn is_on(self) -> bool {
        SELECTED.get().or_else(of_the_process) == Some(self)
    }
}
