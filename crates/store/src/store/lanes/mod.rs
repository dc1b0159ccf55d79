//! Lanes of this process's writers: states, group commits, cached pages.

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
