//! Lanes: the redo log of one writer, and the table's own.

mod batch;
mod ending;
mod generation;
mod log;
mod mend;
mod scan;
mod source;
mod spill;

pub use batch::Batch;
pub(crate) use ending::damaged;
pub use ending::{Ending, Proof, Search, ending, expect_sound};
pub use generation::Witnesses;
pub use log::LaneLog;
pub use mend::mend;
pub(crate) use mend::wrong_bit;
pub use scan::{BatchView, scan, scan_beside};
pub use source::{BatchSource, Done};
pub(crate) use spill::{pointer, visit_spilled};
