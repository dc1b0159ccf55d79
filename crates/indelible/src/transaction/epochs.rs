//! The thread that publishes on-demand commits regularly.

use crate::error::Cause;
use crate::memory::MemoryError;
use crate::pool::Bounds;
use crate::sys::mask::Blocked;
use indelible_store::error::StoreError;
use indelible_store::medium::MediumError;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for new bounds or the end.
pub(super) const LOOK: Duration = Duration::from_secs(1);

pub(super) fn now_and_then<S: Send + Sync + 'static>(
    space: &Arc<S>,
    bounds: Arc<Bounds>,
    publish: impl Fn(&S) + Send + 'static,
) -> Result<(), Cause> {
    let space = Arc::downgrade(space);
    start("indelible-epoch", move || {
        loop {
            std::thread::sleep(bounds.every().map_or(LOOK, |every| every.min(LOOK)));
            if space.strong_count() == 0 {
                return;
            }
            // Without a bound, this thread must not be the last that has the space.
            if bounds.every().is_some()
                && let Some(space) = space.upgrade()
            {
                publish(&space);
            }
        }
    })
}

pub(super) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Cause> {
    // The program's handlers run on its own threads.
    let _blocked = Blocked::all();
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(|error| MemoryError::from(StoreError::from(MediumError::Io(error))).into())
}
