//! The store: a pool shared by processes.
//!
//! ARCHITECTURE.md lists its rooms, bottom-up; each imports only earlier ones (`xtask/tests/tidy`).
//!
//! Lock order, outermost first: the objects of transactions → an object (kernel lock, never waited
//! for) → a lane's apply lock → a writer lane's state → an object's page cache → the table (mutex
//! in the process, then the kernel lock) → the lane locks, the object locks, the kept lanes. Under
//! the table neither an apply lock nor the kernel lock of a lane is waited for: they are tried.
//!
//! A read-only store takes no lock, so that its readers never delay a writer. It repeats a read of
//! the table that changed meanwhile (access.rs); its readers copy their object and check that it is
//! the same (attachment/attach.rs).

mod access;
mod attachment;
mod check;
mod lanes;
mod locks;
mod operations;
mod pool;
mod publication;
mod repair;
mod transactions;
mod upgrade;

pub use attachment::{
    Changes, Followed, InPlace, Lines, LivePages, Pending, Primary, Psync, Reader, SealedPages, Sharer,
    Staged, StillObject, Unlocked, Writer, psync_all, stage,
};
pub use check::{Finding, Report, Severity};
pub use lanes::{LaneUse, PageImage};
pub use operations::{
    Attributes, BatchDump, Difference, FormatOptions, LaneDump, Leaving, Life, Listed, Listing, Logged,
    RangeOf, Revived, SnapshotOf, Status, StoreInfo, Unpublished, Wanted, Window, content_id, likely_use,
};
pub use pool::{Identity, Store, SuperblockSlot};
pub use repair::{RepairAction, RepairOptions};
pub use transactions::{ChangedLine, Commits};
pub use upgrade::Upgraded;
