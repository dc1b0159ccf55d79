//! Lanes of writers, as this process has them: states, commits of several threads, pages kept in
//! memory.

mod advance;
mod lane_use;
mod page_cache;
mod state;
mod writer;

pub(in crate::store) use advance::Advance;
pub use lane_use::LaneUse;
pub use page_cache::PageImage;
pub(in crate::store) use page_cache::{PageCache, page_cache_for};
pub(in crate::store) use writer::{Changing, WriterLane};
