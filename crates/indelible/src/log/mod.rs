//! Logs in objects (S2.21, S2.27): records that are appended, and durable as of the next psync; and
//! messages of a queue that are acknowledged once they are.
//!
//! FORMAT.md, section 13, has the bytes. Nothing in them is believed before it was compared with
//! the object's size, and with its checksum.

mod beside;
mod format;
mod reader;
mod writer;

pub use reader::{LogReader, LogRecord};
pub use writer::Log;
