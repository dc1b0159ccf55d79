//! Write-back errors of the file, and their reports to handles.

use super::fault::{eio, enospc};
use indelible_store::medium::MediumError;

/// The file's error, as in `errseq_t`: a number that grows with each error after a report, and
/// whether any handle got the last.
#[derive(Default)]
pub(super) struct Errors {
    sequence: u64,
    seen: bool,
    no_space: bool,
}

impl Errors {
    pub(super) fn sample(&self) -> u64 {
        if self.seen { self.sequence } else { 0 }
    }

    pub(super) fn set(&mut self, no_space: bool) {
        if self.seen || self.sequence == 0 {
            self.sequence += 1;
        }
        (self.seen, self.no_space) = (false, no_space);
    }

    pub(super) fn is_due(&self, cursor: u64) -> bool {
        self.sequence != cursor
    }

    pub(super) fn check_and_advance(&mut self, cursor: &mut u64) -> Result<(), MediumError> {
        if !self.is_due(*cursor) {
            return Ok(());
        }
        (self.seen, *cursor) = (true, self.sequence);
        Err(if self.no_space { enospc() } else { eio() })
    }
}

/// The cursor of a question: a handle is two descriptions of the file, one for barriers and one for
/// the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Barrier,
    DurableWrite,
}
