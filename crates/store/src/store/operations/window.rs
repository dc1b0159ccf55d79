//! The address window of a new pool, fixed for its life.
//!
//! A process can attach objects of two pools only if the objects' ranges do not overlap. So a
//! window begins at a random place, as far as possible from known ones.
//!
//! Odds: two unknown pools whose objects have S and T bytes meet with a probability of about
//! (S + T) / R, where R = 54 TiB - 2·W for a window of W bytes.

use crate::error::{Result, StoreError};

/// A pool's range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

const TIB: u64 = 1 << 40;

/// Unused by executables and system mappings.
const PLACES: [(u64, u64); 2] = [(0x4000_0000_0000, 0x5400_0000_0000), (0x5800_0000_0000, 0x7a00_0000_0000)];

pub(super) const ANY: Window = Window { start: PLACES[0].0, len: PLACES[1].1 - PLACES[0].0 };

const STEP: u64 = 2 << 20;

const CANDIDATES: usize = 64;

/// Bytes at the start of a window that a pool of `len` bytes is likely to use: objects reserve
/// several times their size.
#[must_use]
pub fn likely_use(len: u64) -> u64 {
    len.saturating_mul(8).clamp(1 << 30, TIB)
}

impl Window {
    /// A window for a pool of `pool_len` bytes: the farthest of several places from `random` to
    /// `known`, most important first.
    #[must_use]
    pub fn choose(random: u64, pool_len: u64, known: &[Window]) -> Window {
        let len = pool_len.next_power_of_two().saturating_mul(16).clamp(TIB, 16 * TIB);
        let used = likely_use(pool_len);
        let mut state = random;
        let mut best = (Window { start: place(next(&mut state), len), len }, (0, 0));
        if known.is_empty() {
            return best.0;
        }
        for _ in 0..CANDIDATES {
            let start = place(next(&mut state), len);
            let mut distances = known.iter().map(|other| other.distance(start, used));
            let clear = distances.clone().position(|distance| distance == 0).unwrap_or(known.len());
            let score = (clear, distances.by_ref().take(clear).min().unwrap_or(0));
            if score > best.1 {
                best = (Window { start, len }, score);
            }
        }
        best.0
    }

    pub(super) fn has(&self, address: u64, len: u64) -> bool {
        let end = address.checked_add(len);
        address >= self.start && end.is_some_and(|end| end - self.start <= self.len)
    }

    fn distance(&self, start: u64, len: u64) -> u64 {
        let after = start.saturating_sub(self.start.saturating_add(self.len));
        let before = self.start.saturating_sub(start.saturating_add(len));
        after.max(before)
    }

    /// Where objects cannot lie.
    pub(in crate::store) fn verify(self, pool_len: u64) -> Result<Self> {
        let bad = |why| Err(StoreError::BadWindow { start: self.start, len: self.len, why });
        // An interpreter's memory is anywhere.
        let (first, end) = (if cfg!(miri) { 0 } else { PLACES[0].0 }, PLACES[1].1);
        if !self.start.is_multiple_of(STEP) || !self.len.is_multiple_of(STEP) {
            return bad("start and length must be multiples of 2 MiB");
        }
        if self.len < pool_len {
            return bad("it is smaller than the pool");
        }
        match self.start.checked_add(self.len) {
            Some(window_end) if self.start >= first && window_end <= end => Ok(self),
            _ => bad("it must lie between 0x400000000000 and 0x7a0000000000"),
        }
    }
}

fn place(random: u64, len: u64) -> u64 {
    let room = |(from, to): (u64, u64)| (to - from - len) / STEP + 1;
    let pick = random % (room(PLACES[0]) + room(PLACES[1]));
    match pick.checked_sub(room(PLACES[0])) {
        None => PLACES[0].0 + pick * STEP,
        Some(pick) => PLACES[1].0 + pick * STEP,
    }
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn pools_of_this_process_do_not_meet_where_thousands_are_known() {
        let far: Vec<_> =
            (0..4096).map(|seed| Window { len: 16 * GIB, ..Window::choose(seed, GIB, &[]) }).collect();
        let mut open = Vec::new();
        for n in 0..40 {
            let known = [open.as_slice(), &far].concat();
            let window = Window { len: likely_use(17 * GIB), ..Window::choose(n, 17 * GIB, &known) };
            assert!(
                open.iter().all(|other: &Window| other.distance(window.start, window.len) > 0),
                "pool {n}"
            );
            open.push(window);
        }
    }

    /// The odds at the head of this file, which users are told.
    #[test]
    fn pools_that_do_not_know_of_each_other_meet_as_often_as_is_said() {
        const TRIES: u64 = 200_000;
        for (pool, used) in [(64 * GIB, 64 * GIB), (64 * GIB, 16 * GIB), (1024 * GIB, 512 * GIB)] {
            let start = |seed: u64| Window::choose(seed, pool, &[]).start;
            let met =
                (0..TRIES).filter(|seed| start(2 * seed).abs_diff(start(2 * seed + 1)) < used).count() as f64;
            let room = 54 * TIB - 2 * Window::choose(0, pool, &[]).len;
            let said = TRIES as f64 * (2 * used) as f64 / room as f64;
            assert!(
                (met - said).abs() < 0.05 * said + 4.0 * said.sqrt(),
                "{met} of {TRIES} met, and not {said}"
            );
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "half a million comparisons a seed take hours")]
    fn a_thousand_known_pools_of_two_gibibytes_stay_apart() {
        for seed in 0..4 {
            let mut known: Vec<Window> = Vec::new();
            for n in 0..1000 {
                let window = Window::choose(seed << 32 | n, 2 * GIB, &known);
                let used = Window { len: 2 * GIB, ..window };
                let near = known.iter().map(|other| other.distance(used.start, used.len)).min();
                assert!(near.is_none_or(|near| near > 0), "seed {seed}, pool {n}: {window:x?}");
                known.push(Window { len: likely_use(2 * GIB), ..window });
            }
        }
    }

    #[test]
    fn every_window_chosen_can_be_asked_for() {
        let mut state = 1;
        for len in [1 << 20, GIB, TIB, 32 * TIB] {
            for _ in 0..1000 {
                let window = Window::choose(next(&mut state), len, &[]);
                window.verify(len.min(window.len)).unwrap();
                let inside = |(from, to)| from <= window.start && window.start + window.len <= to;
                assert!(PLACES.into_iter().any(inside), "{window:x?}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "an interpreter's objects lie anywhere")]
    fn a_window_that_objects_cannot_have_is_refused() {
        let good = Window { start: 0x4000_0000_0000, len: TIB };
        good.verify(GIB).unwrap();
        let bad = [
            Window { start: good.start + 4096, ..good },
            Window { start: 0, ..good },
            Window { start: 0x7a00_0000_0000, ..good },
            Window { len: GIB / 2, ..good },
            Window { start: u64::MAX - STEP + 1, ..good },
        ];
        for window in bad {
            assert!(matches!(window.verify(GIB), Err(StoreError::BadWindow { .. })), "{window:x?}");
        }
    }
}
