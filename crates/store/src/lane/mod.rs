//! Lanes: the redo log of one writer, and the table's own.

mod batch;
mod beyond;
mod lender;
mod log;
mod scan;

pub use batch::Batch;
pub use beyond::{Later, beyond, broken, ends_damaged};
pub use lender::{Done, Lender};
pub use log::LaneLog;
pub use scan::{BatchView, scan};
