//! Lanes of writers, as this process has them: states, commits of several threads, pages kept in memory.

mod page_cache;
mod state;
mod writer;

pub use page_cache::PageImage;
pub(in crate::store) use page_cache::{PageCache, page_cache_for};
pub use writer::LaneUse;
pub(in crate::store) use writer::{Advance, Changing, WriterLane};
