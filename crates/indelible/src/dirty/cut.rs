//! How a cut keeps the stores of other threads out of its content.

/// Threads that may store to an object while a cut of it is taken: see
/// [`Object::psync_cut_beside`](crate::Object::psync_cut_beside).
pub trait Bystanders {
    /// Called before dirty pages are copied, of which there will be copies of `bytes` in all: in
    /// round 0 for the first time, then each time that threads stored meanwhile. It may first keep
    /// such threads away, or wait for a while.
    fn before_copy(&mut self, round: u32, bytes: usize) -> Beside;

    /// The content is fixed: threads that were kept away may go on. Not called if the cut fails
    /// before.
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

/// Nothing is known of the other threads: a few looks find out whether they store all the time.
pub(crate) struct Unknown;

/// Bytes whose copying takes no longer than protecting them.
const FEW_BYTES: usize = 16 << 20;

impl Bystanders for Unknown {
    fn before_copy(&mut self, round: u32, bytes: usize) -> Beside {
        if round < 3 && bytes <= FEW_BYTES { Beside::Copy } else { Beside::HoldUp }
    }
}

/// The means by which a cut's content stays as it is until it is collected and compared.
pub(crate) enum Cut<'a> {
    /// All stores wait.
    Closed,
    /// Stores to dirty pages wait; those to others belong to the next psync.
    Frozen,
    /// No store waits: dirty pages are copied until a look finds that none was stored to meanwhile,
    /// so that the copies show one moment. The others decide what is done if they do not let that
    /// happen.
    Copied(&'a mut dyn Bystanders),
}
