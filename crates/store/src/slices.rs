//! Waits in slices: a caller that has to look after something else now and then has waits for
//! locks end early, and makes the call again.
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
/// the caller made this call for the first time. Returns whether one ended
/// early: then an error of `f` means that nothing happened yet, and the call is to be made again.
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

/// Whether a wait that is not over has to end early.
#[must_use]
pub fn is_over() -> bool {
    let Some(slice) = SLICE.get().filter(|slice| slice.end <= Instant::now()) else { return false };
    SLICE.set(Some(Slice { cut: true, ..slice }));
    true
}
