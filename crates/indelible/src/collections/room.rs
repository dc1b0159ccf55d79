//! Rooms in which threads wait for locks of objects: any number of locks share a room.

use crate::sys::sync::{Condvar, Mutex};
use crate::sys::total::AtomicU64;

pub(super) struct Room {
    pub(super) doors: Mutex<()>,
    pub(super) bell: Condvar,
}

static ROOMS: [Room; 64] = [const { Room { doors: Mutex::new(()), bell: Condvar::new() } }; 64];

/// Tries before a thread goes to wait.
pub(super) const SPINS: usize = 64;

/// The room of a lock.
pub(super) fn room(word: &AtomicU64) -> &'static Room {
    let address = std::ptr::from_ref(word).addr();
    &ROOMS[(address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58]
}
