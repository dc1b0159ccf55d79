//! Waits in slices: a caller with other duties now and then ends its waits for locks early, and
//! makes the call again.
//!
//! The wait of all calls together is no longer than that of one would be.

use std::cell::Cell;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
struct Slice {
    /// When the first call began.
    begin: Instant,
    end: Instant,
    cut: bool,
}

thread_local! {
    static SLICE: Cell<Option<Slice>> = const { Cell::new(None) };
}

/// Runs `f`, in which no wait goes on for longer than `length`; a wait has begun at `begin`, when
/// the caller made this call for the first time. Returns whether one ended early: then an error of
/// `f` means that nothing happened yet, and the caller must make the call again.
pub fn in_slices<T>(begin: Instant, length: Duration, f: impl FnOnce() -> T) -> (T, bool) {
    let before = SLICE.replace(Some(Slice { begin, end: Instant::now() + length, cut: false }));
    let result = f();
    let cut = SLICE.replace(before).is_some_and(|slice| slice.cut);
    (result, cut)
}

/// When a wait has begun that begins now.
#[must_use]
pub fn begin() -> Instant {
    SLICE.get().map_or_else(Instant::now, |slice| slice.begin)
}

/// Whether a wait must end early.
#[must_use]
pub fn is_over() -> bool {
    let Some(slice) = SLICE.get().filter(|slice| slice.end <= Instant::now()) else { return false };
    SLICE.set(Some(Slice { cut: true, ..slice }));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_its_slice_and_its_time_goes_on() {
        assert!(!is_over(), "outside of slices");
        let first = Instant::now().checked_sub(Duration::from_secs(7)).unwrap();
        let (done, cut) = in_slices(first, Duration::from_secs(60), || (is_over(), begin()));
        assert_eq!((done, cut), ((false, first), false));
        let (over, cut) = in_slices(first, Duration::ZERO, || {
            let inner = in_slices(Instant::now(), Duration::from_secs(60), is_over);
            assert_eq!(inner, (false, false));
            is_over()
        });
        assert!(over && cut && !is_over());
    }
}
