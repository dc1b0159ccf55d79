//! The pools this process has open: one each, by any path, so that its threads share locks and
//! mappings.

use super::Inner;
use super::options::Settings;
use crate::error::Cause;
use crate::media::Media;
use crate::sys::per_process::PerProcess;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// While a pool is opened, its lock is held.
static OPEN: PerProcess<Mutex<Vec<Weak<Inner>>>> = PerProcess::new();

fn pools() -> MutexGuard<'static, Vec<Weak<Inner>>> {
    OPEN.get().lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn share(
    media: &mut Media,
    read_only: bool,
    settings: &Settings,
    open: impl FnOnce(&mut Media) -> Result<Arc<Inner>, Cause>,
) -> Result<Arc<Inner>, Cause> {
    let mut pools = pools();
    pools.retain(|pool| pool.strong_count() > 0);
    let same = |pool: &Arc<Inner>| {
        media.identity().is_some()
            && pool.media.identity() == media.identity()
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
        other.store.id() == pool.store.id() && other.media.identity() != media.identity()
    };
    if let Some(original) = pools.iter().filter_map(Weak::upgrade).find(copied) {
        return Err(Cause::Copy(original.path.clone()));
    }
    pools.push(Arc::downgrade(&pool));
    Ok(pool)
}

pub(super) fn open_pools() -> Vec<Arc<Inner>> {
    pools().iter().filter_map(Weak::upgrade).collect()
}

pub(super) fn add(pool: Arc<Inner>) -> Arc<Inner> {
    pools().push(Arc::downgrade(&pool));
    pool
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::{self, Access};
    use crate::pool::{Pool, PoolOptions};
    use crate::sys::fork::is_so_in_a_child;
    use std::sync::mpsc::channel;

    #[test]
    fn a_child_of_a_process_that_opens_a_pool_opens_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slow.pmo");
        drop(Pool::format(&path, 16 << 20).unwrap());
        let options = PoolOptions::new();
        let mut media = media::open(&path, &options.as_media(Access::ReadWrite)).unwrap();
        let settings = options.settings().unwrap();
        let ((enters, entered), (ends, ended)) = (channel(), channel());
        let own = || -> crate::Result<u64> {
            let pool = Pool::open_or_format(folder.path().join("own.pmo"), 16 << 20)?;
            let mut object = pool.create_attached("a", 5000)?;
            *object.root_mut::<u64>()? = 7;
            object.psync()?;
            object.detach()?;
            Ok(*pool.attach_read("a")?.root::<u64>()?)
        };
        std::thread::scope(|scope| {
            let slow = scope.spawn(move || {
                share(&mut media, false, &settings, |_| {
                    enters.send(()).unwrap();
                    ended.recv().unwrap();
                    Err(Cause::Forked)
                })
            });
            entered.recv().unwrap();
            let is_so = is_so_in_a_child(|| own().is_ok_and(|value| value == 7));
            ends.send(()).unwrap();
            assert!(slow.join().unwrap().is_err() && is_so);
        });
        let left = Pool::open(folder.path().join("own.pmo")).unwrap();
        assert_eq!(*left.attach_read("a").unwrap().root::<u64>().unwrap(), 7);
    }
}
