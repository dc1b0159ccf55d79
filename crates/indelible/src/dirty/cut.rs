//! How a cut excludes concurrent stores from its content.

use super::range::PageRange;

/// Threads that may store to an object during a cut: see
/// [`Object::psync_cut_beside`](crate::Object::psync_cut_beside).
pub trait Bystanders {
    /// Called before `bytes` of dirty pages are copied: in round 0, then after each concurrent
    /// store. It may block such threads, or wait.
    fn before_copy(&mut self, round: u32, bytes: usize) -> Beside;

    /// The content is fixed: blocked threads may go on.
    fn go_on(&mut self) {}
}

/// Answer of [`Bystanders::before_copy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Copy the pages, and look again.
    Copy,
    /// Make stores wait, by protection.
    HoldUp,
    /// Fail, with the kind `Busy`, before anything is made durable.
    GiveUp,
}

/// Unknown threads: a few looks show whether they store all the time.
pub(crate) struct Unknown;

/// Bytes that are copied as fast as they are protected.
const FEW_BYTES: usize = 16 << 20;

impl Bystanders for Unknown {
    fn before_copy(&mut self, round: u32, bytes: usize) -> Beside {
        if round < 3 && bytes <= FEW_BYTES { Beside::Copy } else { Beside::HoldUp }
    }
}

pub(crate) enum Cut<'a> {
    Closed,
    /// Stores to these pages wait; none is to be collected. A rung may make all stores wait.
    Pages(PageRange),
    /// Stores to dirty pages wait; others belong to the next psync.
    Frozen,
    Copied(&'a mut dyn Bystanders),
}
