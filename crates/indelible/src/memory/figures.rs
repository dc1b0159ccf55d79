//! Figures of commits that are not durable, in the memory that they are in: other processes look at
//! them while the process runs, or once it is dead.
//!
//! They are words that one process stores and others load, and mean nothing to a recovery.

use super::area::{WORD, Words};
use crate::sys::PAGE;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of the head of a group: a word for how many logs there are, and one for the length of
/// each; in its last page figures.
pub(super) const HEAD: usize = 16 * PAGE;
/// Place of the figures, in words.
pub(super) const FIGURES: usize = (HEAD - PAGE) / WORD;
/// So many logs, and one more, have no room.
pub(super) const LOGS: usize = FIGURES;

/// Those of a group, mapped: in the last page of its head.
#[derive(Debug)]
pub(crate) struct Figures(Words);

impl Figures {
    pub(super) fn of(head: Words) -> Figures {
        Figures(head)
    }

    #[inline]
    fn word(&self, nth: usize) -> &AtomicU64 {
        &self.0.all()[FIGURES + nth]
    }

    /// All commits up to this number are durable.
    #[inline]
    pub(crate) fn durable(&self) -> &AtomicU64 {
        self.word(0)
    }

    /// Lines that are marked for the next epoch.
    #[inline]
    pub(crate) fn pending(&self) -> &AtomicU64 {
        self.word(1)
    }

    /// When the first of them was marked, in nanoseconds since 1970; 0: there are none.
    #[inline]
    pub(crate) fn since(&self) -> &AtomicU64 {
        self.word(2)
    }

    /// Commits that were made durable before they returned, as the bound of the guard said.
    #[inline]
    pub(crate) fn at_once(&self) -> &AtomicU64 {
        self.word(3)
    }
}

/// The time, in nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
