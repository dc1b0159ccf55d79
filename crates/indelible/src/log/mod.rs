//! Logs in objects (S2.21, S2.27): appended records, durable at the next psync; and queue messages
//! acknowledged once logged (FORMAT.md, section 13).

mod beside;
mod format;
mod reader;
mod writer;

pub use reader::{LogReader, LogRecord};
pub use writer::Log;
