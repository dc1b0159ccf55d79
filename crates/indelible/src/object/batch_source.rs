//! Lines of a large psync, borrowed from the shadow.
//!
//! Invariant: a [`Part`] is a shadow, mapped as long as the part is used. The contract forbids
//! stores to it meanwhile; a store in violation is logged or not (see `shadow/lines.rs`).

#![allow(unsafe_code)]

use super::compare::{LINE, threads_for};
use crate::shadow::{Shadow, copy_bytes};
use crate::sys::PAGE;
use indelible_store::lane::{BatchSource, Done};
use std::ops::Range;

pub(super) struct Part {
    extent: Range<u64>,
    shadow: *const u8,
}

impl Part {
    pub(super) fn new(primary: u64, shadow: &Shadow) -> Part {
        Part { extent: primary..primary + shadow.len() as u64, shadow: shadow.base().as_ptr() }
    }
}

pub(super) struct Shadows<'a>(pub(super) &'a [Part]);

// SAFETY: shadows are read by assembly, which any thread may do.
unsafe impl Sync for Shadows<'_> {}

impl BatchSource for Shadows<'_> {
    fn copy(&self, target: u64, out: &mut [u8]) {
        let end = target + out.len() as u64;
        let owner = self.0.iter().find(|part| part.extent.start <= target && end <= part.extent.end);
        let Some(part) = owner else { unreachable!("lines of no object of this psync") };
        // SAFETY: within the shadow, as was just found.
        unsafe { copy_bytes(part.shadow.add((target - part.extent.start) as usize), out) };
    }

    fn share(&self, lines: u64, work: &(dyn Fn(Range<u64>) -> Done + Sync)) -> Done {
        let threads = threads_for(lines / (PAGE / LINE) as u64);
        let share = lines.div_ceil(threads);
        let piece = |number: u64| (number * share).min(lines)..((number + 1) * share).min(lines);
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..threads).map(|number| scope.spawn(move || work(piece(number)))).collect();
            let own = work(piece(0));
            others.into_iter().fold(own, |done, thread| match thread.join() {
                Ok(other) => done.and(other),
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }
}
