use super::attached::Attached;
use super::member::last_of_thread;
use crate::error::Result;
use indelible_store::format::LINE;

/// Commits that are not durable: see [`TxObject::pending`](crate::TxObject::pending).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Upper bound of transactions.
    pub transactions: u64,
    /// Bytes, in lines of 64.
    pub bytes: u64,
}

impl Pending {
    pub(crate) fn of(attached: &Attached) -> Pending {
        attached.space.demand().map_or(Pending::default(), |demand| Pending {
            transactions: attached.space.last().saturating_sub(demand.durable()),
            bytes: demand.pending() * LINE,
        })
    }
}

/// Reads of blocks are unknown: it waits for all commits.
pub(crate) fn sync(attached: &Attached) -> Result<()> {
    let space = &attached.space;
    let last = || if space.is_for_blocks() { space.last() } else { last_of_thread(space) };
    attached.outside("make durable transactions on", || space.sync(last()))
}
