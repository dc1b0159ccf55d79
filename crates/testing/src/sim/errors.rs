//! Write-back errors of the file, and the handles that are told of them.

use super::fault::{eio, enospc};
use indelible_store::medium::MediumError;

/// The file's error, as `errseq_t` keeps it: a number that grows with each error that is not yet
/// known to be one of those reported, and whether any handle was told of the last.
#[derive(Default)]
pub(super) struct Errors {
    sequence: u64,
    seen: bool,
    no_space: bool,
}

impl Errors {
    /// The cursor of a handle that is opened now.
    pub(super) fn sample(&self) -> u64 {
        if self.seen { self.sequence } else { 0 }
    }

    /// A page could not be written back.
    pub(super) fn set(&mut self, no_space: bool) {
        if self.seen || self.sequence == 0 {
            self.sequence += 1;
        }
        (self.seen, self.no_space) = (false, no_space);
    }

    pub(super) fn is_due(&self, cursor: u64) -> bool {
        self.sequence != cursor
    }

    /// Tells a handle all news.
    pub(super) fn check_and_advance(&mut self, cursor: &mut u64) -> Result<(), MediumError> {
        if !self.is_due(*cursor) {
            return Ok(());
        }
        (self.seen, *cursor) = (true, self.sequence);
        Err(if self.no_space { enospc() } else { eio() })
    }
}

/// The cursor of a question: a handle is two descriptions of the file, one for barriers and one for
/// everything else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    Barrier,
    DurableWrite,
}
