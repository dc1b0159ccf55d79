//! The receiver of commits, and a commit's receipt.

use super::write_set::WriteSet;

/// A committed transaction's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// 0: none.
    pub(crate) sequence: u64,
    pub(crate) newest_read: u64,
}

impl Receipt {
    /// Its place among all changing transactions. `None`: it changed nothing.
    #[must_use]
    pub fn sequence(&self) -> Option<u64> {
        (self.sequence != 0).then_some(self.sequence)
    }

    /// The last commit whose changes it may have read; 0: none.
    #[must_use]
    pub fn newest_read(&self) -> u64 {
        self.newest_read
    }

    /// The last commit that must be durable before this one is acknowledged: itself, or the last
    /// read.
    #[must_use]
    pub fn durable_from(&self) -> u64 {
        if self.sequence != 0 { self.sequence } else { self.newest_read }
    }
}

/// Receives each commit before other threads see its changes.
///
/// Each sequence number from 1 on comes once: by `commit`, followed by `stored` if accepted, or by
/// `skipped`; or by [`Alone::sequence`](crate::Alone::sequence), whose caller handles it. Threads
/// call out of order; but of two transactions that change, or read and change, the same line, the
/// first was `stored` before the other's `commit`.
///
/// A panic aborts the transaction, except in `stored`, when it is committed.
pub trait Sink: Send + Sync {
    /// The sink's state per thread, such as a log.
    type Own: Default;
    /// Why a commit is refused or not acknowledged.
    type Error;

    /// A transaction is about to commit: its reads are valid, and it owns all that it changes. Must
    /// not wait for a medium: other threads wait for the stripes.
    ///
    /// # Errors
    ///
    /// The transaction is aborted without another try; `skipped` is not called.
    fn commit(&self, own: &mut Self::Own, sequence: u64, writes: &WriteSet) -> Result<(), Self::Error>;

    /// The changes are in memory, still invisible to other threads.
    fn stored(&self, own: &mut Self::Own, sequence: u64) {
        let _ = (own, sequence);
    }

    /// The number was taken, and nothing is committed under it.
    fn skipped(&self, own: &mut Self::Own, sequence: u64) {
        let _ = (own, sequence);
    }

    /// The transaction owns nothing: the place to wait for the medium. Also called for read-only
    /// ones.
    ///
    /// # Errors
    ///
    /// The caller learns that the commit is in memory, its durability unknown.
    fn acknowledge(&self, own: &mut Self::Own, receipt: Receipt) -> Result<(), Self::Error> {
        let _ = (own, receipt);
        Ok(())
    }
}

/// Ignores commits: a plain transactional memory.
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
