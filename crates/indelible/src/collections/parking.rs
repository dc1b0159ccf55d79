//! Parking lots for threads that wait for locks of objects.

use crate::sys::per_process::PerProcess;
use crate::sys::sync::{Condvar, Mutex};
use crate::sys::total::AtomicU64;

#[derive(Default)]
pub(super) struct ParkingLot {
    pub(super) queue: Mutex<()>,
    pub(super) wake: Condvar,
}

static LOTS: PerProcess<[ParkingLot; 64]> = PerProcess::new();

pub(super) const SPINS: usize = 64;

pub(super) fn parking_lot(word: &AtomicU64) -> &'static ParkingLot {
    let address = std::ptr::from_ref(word).addr();
    let lots = LOTS.get_or(|_| std::array::from_fn(|_| ParkingLot::default()));
    &lots[(address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58]
}
