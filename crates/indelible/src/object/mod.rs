//! Attached objects.

mod compare;
mod engine;
mod reader;
mod stats;
mod writer;

pub use reader::ReadObject;
pub use stats::PsyncStats;
pub use writer::{Object, psync_all};

pub(crate) use engine::{Core, psync_cores};
pub(crate) use reader::ReadCore;
