//! The pools this process has open: one each, by any path, so that its threads share locks and
//! mappings.

use super::Inner;
use super::options::Settings;
use crate::error::Cause;
use crate::media::Media;
use crate::sys::fork;
use std::sync::{Arc, Mutex, Weak};

static OPEN: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

pub(super) fn share(
    media: &mut Media,
    read_only: bool,
    settings: &Settings,
    open: impl FnOnce(&mut Media) -> Result<Arc<Inner>, Cause>,
) -> Result<Arc<Inner>, Cause> {
    let mut pools = OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    pools.retain(|pool| pool.strong_count() > 0);
    let same = |pool: &Arc<Inner>| {
        media.identity().is_some()
            && pool.media.identity() == media.identity()
            && !fork::is_stale(pool.generation)
            && pool.store.is_read_only() == read_only
            && pool.settings == *settings
            && pool.media.kind() == media.kind()
            // A pool formatted over it has the same file.
            && pool.store.is_there()
    };
    if let Some(pool) = pools.iter().filter_map(Weak::upgrade).find(same) {
        return Ok(pool);
    }
    let pool = open(media)?;
    // A copy has its original's ID and addresses: their objects are indistinguishable.
    let copied = |other: &Arc<Inner>| {
        other.store.id() == pool.store.id()
            && other.media.identity() != media.identity()
            && !fork::is_stale(other.generation)
    };
    if let Some(original) = pools.iter().filter_map(Weak::upgrade).find(copied) {
        return Err(Cause::Copy(original.path.clone()));
    }
    pools.push(Arc::downgrade(&pool));
    Ok(pool)
}

pub(super) fn open_pools() -> Vec<Arc<Inner>> {
    let pools = OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    pools.iter().filter_map(Weak::upgrade).collect()
}

pub(super) fn add(pool: Arc<Inner>) -> Arc<Inner> {
    OPEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(Arc::downgrade(&pool));
    pool
}
