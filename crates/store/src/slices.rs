//! Waits in slices: a caller with other duties ends lock waits early and repeats the call. All
//! calls together wait no longer than one.

use std::cell::Cell;
use std::time::{Duration, Instant};

#[derive(Clone, Copy)]
struct Slice {
    begin: Instant,
    end: Instant,
    cut: bool,
}

thread_local! {
    static SLICE: Cell<Option<Slice>> = const { Cell::new(None) };
}

/// Runs `f` with waits of at most `length`, for a call first made at `begin`. Returns whether a
/// wait ended early: after an error then, the caller repeats the call.
pub fn in_slices<T>(begin: Instant, length: Duration, f: impl FnOnce() -> T) -> (T, bool) {
    let before = SLICE.replace(Some(Slice { begin, end: Instant::now() + length, cut: false }));
    let result = f();
    let cut = SLICE.replace(before).is_some_and(|slice| slice.cut);
    (result, cut)
}

/// Start of a wait that begins now.
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
