//! Waits in slices: a caller with other duties ends lock waits early and repeats the call. A wait
//! and its repetitions together are no longer than one, and work between waits does not count.

use std::cell::Cell;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
struct Slice {
    waited: Duration,
    length: Duration,
    cut: Option<Duration>,
}

thread_local! {
    static SLICE: Cell<Option<Slice>> = const { Cell::new(None) };
}

/// Runs `f` with waits of at most `length`. Returns whether one ended early: after an error then,
/// the caller repeats the call. Adds that wait to `waited`, which is zero at first.
pub fn in_slices<T>(waited: &mut Duration, length: Duration, f: impl FnOnce() -> T) -> (T, bool) {
    let before = SLICE.replace(Some(Slice { waited: *waited, length, cut: None }));
    let result = f();
    let cut = SLICE.replace(before).and_then(|slice| slice.cut);
    *waited += cut.unwrap_or_default();
    (result, cut.is_some())
}

/// Whether a wait of the running call ended early: then the call must be an error.
#[must_use]
pub fn was_cut() -> bool {
    SLICE.get().is_some_and(|slice| slice.cut.is_some())
}

/// A wait that begins now.
#[derive(Clone, Copy)]
pub struct Wait {
    begin: Instant,
    waited: Duration,
}

impl Wait {
    /// Begins a wait.
    #[must_use]
    pub fn begin() -> Wait {
        let waited = SLICE.get().map_or(Duration::ZERO, |slice| slice.waited);
        Wait { begin: Instant::now(), waited }
    }

    /// Its time so far, in all slices.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.waited + self.begin.elapsed()
    }

    /// Whether it must end early.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let here = self.begin.elapsed();
        let Some(slice) = SLICE.get().filter(|slice| slice.length <= here) else { return false };
        SLICE.set(Some(Slice { cut: Some(here.max(slice.cut.unwrap_or_default())), ..slice }));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_wait_ends_with_its_slice_and_its_time_goes_on() {
        assert!(!Wait::begin().is_over(), "outside of slices");
        let mut waited = Duration::from_secs(7);
        let (done, cut) = in_slices(&mut waited, LONG, || (Wait::begin().is_over(), Wait::begin().elapsed()));
        assert!(!done.0 && !cut && done.1 >= waited && waited == Duration::from_secs(7));
        let (over, cut) = in_slices(&mut waited, Duration::ZERO, || {
            let mut none = Duration::ZERO;
            let inner = in_slices(&mut none, LONG, || Wait::begin().is_over());
            assert!(inner == (false, false) && !was_cut());
            Wait::begin().is_over() && was_cut()
        });
        assert!(over && cut && !Wait::begin().is_over() && !was_cut());
        assert!(waited >= Duration::from_secs(7));
    }
}
