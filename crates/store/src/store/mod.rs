//! The store: a pool as the processes that share it see it.
//!
//! Rooms, bottom-up; each imports only those before it, and nothing of this file
//! (`xtask/tests/tidy`):
//!
//! - `locks`: which lanes and objects this process has locked, which primaries it holds still, and
//!   how long to wait
//! - `access`: the table, one thread and one process at a time
//! - `lanes`: a lane that this process has: its states, group commit, checkpoints, pages kept in
//!   memory
//! - `pool`: an open pool; which lane an object gets; space for objects
//! - `attachment`: attach, psync, direct writes, grow, detach
//! - `transactions`: commits that become batches in the order of their numbers
//! - `operations`: format, create, rename, resize, destroy, list, and views for tools
//! - `check`, `repair`
//! - `upgrade`: pools of an earlier format
//!
//! Lock order, outermost first: the objects of transactions → an object (kernel lock, never waited
//! for) → a lane's apply lock → a writer lane's state → an object's page cache → the table (mutex
//! in the process, then the kernel lock) → the lane locks, the object locks, the kept lanes. Under
//! the table neither an apply lock nor the kernel lock of a lane is waited for: they are tried.
//!
//! A store that is opened read-only takes no lock at all, so that a reader without write permission
//! is never in a writer's way: it reads the table as it is, and once more if it changed meanwhile
//! (access.rs); its readers copy their object and look whether it is still the same
//! (attachment/attach.rs).

mod access;
mod attachment;
mod check;
mod lanes;
mod locks;
mod operations;
mod pool;
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
    Attributes, BatchDump, Difference, FormatOptions, LaneDump, Leaving, Life, Listing, Logged, Revived,
    SnapshotOf, Status, StoreInfo, Unpublished, Window, content_id, likely_use,
};
pub use pool::{Identity, Store, SuperblockSlot};
pub use repair::{RepairAction, RepairOptions};
pub use transactions::{ChangedLine, Commits};
pub use upgrade::Upgraded;
