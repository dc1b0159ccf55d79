//! Figures about pending commits, in their memory: other processes read them while the process
//! runs, or after its death. Recovery does not use them.

use super::area::{WORD, Words};
use crate::sys::PAGE;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A word for the number of logs, one for each log's length, and figures in the last page.
pub(super) const HEAD: usize = 16 * PAGE;
pub(super) const FIGURES: usize = (HEAD - PAGE) / WORD;
pub(super) const LOGS: usize = FIGURES;

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

    #[inline]
    pub(crate) fn durable(&self) -> &AtomicU64 {
        self.word(0)
    }

    #[inline]
    pub(crate) fn pending(&self) -> &AtomicU64 {
        self.word(1)
    }

    #[inline]
    pub(crate) fn since(&self) -> &AtomicU64 {
        self.word(2)
    }

    #[inline]
    pub(crate) fn at_once(&self) -> &AtomicU64 {
        self.word(3)
    }
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
