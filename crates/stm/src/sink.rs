//! The trait of those that are told of commits, and the receipt that a commit returns.

use super::write_set::WriteSet;

/// The outcome of a transaction that committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// 0 for none.
    pub(crate) sequence: u64,
    pub(crate) newest_read: u64,
}

impl Receipt {
    /// Its place among all transactions that changed something. `None`: it changed nothing.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        (self.sequence != 0).then_some(self.sequence)
    }

    /// The last commit whose changes it may have read; 0 if it read nothing that was ever changed.
    #[must_use]
    pub fn newest_read(&self) -> u64 {
        self.newest_read
    }

    /// The last commit that must be durable before this one is acknowledged: itself, or the last
    /// one that it read.
    #[must_use]
    pub fn durable_from(&self) -> u64 {
        if self.sequence != 0 { self.sequence } else { self.newest_read }
    }
}

/// Is told of each commit before others see its changes.
///
/// Each sequence number from 1 on is told once: by `commit`, which `stored` follows if it agreed,
/// or by `skipped`; or it was taken by [`Alone::sequence`](crate::Alone::sequence), whose caller
/// knows. Several threads call at once, so that numbers do not come in order; but of two
/// transactions that change, or read and change, the same line, the first was `stored` before the
/// other's `commit`. A sink that waits for the next number of all has prefixes of the history.
///
/// If a call panics, the transaction is aborted, but for `stored`: by then it is committed.
pub trait Sink: Send + Sync {
    /// State of the sink for each thread, such as the thread's log.
    type Own: Default;
    /// Why a commit is refused, or not acknowledged.
    type Error;

    /// A transaction is about to commit: its reads are valid, it owns all that it changes, and
    /// memory is as before. Waits for no medium: other threads wait for the stripes.
    ///
    /// # Errors
    ///
    /// The transaction is aborted, without another try; `skipped` is not called for it.
    fn commit(&self, own: &mut Self::Own, sequence: u64, writes: &WriteSet) -> Result<(), Self::Error>;

    /// The changes are in memory, invisible to other threads so far. Its log entry is needed no
    /// more.
    fn stored(&self, own: &mut Self::Own, sequence: u64) {
        let _ = (own, sequence);
    }

    /// The number was taken, and nothing is committed under it.
    fn skipped(&self, own: &mut Self::Own, sequence: u64) {
        let _ = (own, sequence);
    }

    /// The transaction is over, and owns nothing any more: the place to wait for the medium.
    /// Read-only transactions come here as well.
    ///
    /// # Errors
    ///
    /// The caller learns that the commit is in memory, and its durability unknown.
    fn acknowledge(&self, own: &mut Self::Own, receipt: Receipt) -> Result<(), Self::Error> {
        let _ = (own, receipt);
        Ok(())
    }
}

/// Does nothing: a transactional memory as such.
#[derive(Clone, Copy, Debug, Default)]
pub struct Volatile;

impl Sink for Volatile {
    type Own = ();
    type Error = std::convert::Infallible;

    #[inline]
    fn commit(&self, (): &mut (), _: u64, _: &WriteSet) -> Result<(), Self::Error> {
        Ok(())
    }
}
