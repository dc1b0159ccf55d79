use super::page_cache::PageCache;
use crate::recovery::Standing;
use crate::sync::Mutex;
use crate::table::Located;
use std::sync::Arc;

#[derive(Clone)]
pub(in crate::store) struct Advance {
    pub slot: u64,
    pub(super) id: [u8; 16],
    pub standing: Standing,
    pub(super) page_cache: Option<Arc<Mutex<PageCache>>>,
}

impl Advance {
    pub(in crate::store) fn new(
        object: &Located,
        standing: Standing,
        page_cache: Option<Arc<Mutex<PageCache>>>,
    ) -> Self {
        Advance { slot: object.offset, id: object.entry.id, standing, page_cache }
    }
}
