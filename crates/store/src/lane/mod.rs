//! Lanes: the redo log of one writer, and the table's own.

mod batch;
mod ending;
mod generation;
mod lender;
mod log;
mod mend;
mod scan;

pub use batch::Batch;
pub(crate) use ending::damaged;
pub use ending::{Ending, Search, ending, expect_sound};
pub use generation::Witnesses;
pub use lender::{Done, Lender};
pub use log::LaneLog;
pub use mend::mend;
pub use scan::{BatchView, scan};
