//! Logs: records that are appended, and durable as of the next psync.

mod reader;
mod writer;

pub(crate) use reader::LogReader;
pub(crate) use writer::{_open_log, Log};
