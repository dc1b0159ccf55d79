//! Bounded waits for kernel locks; a timeout names the holder.
//!
//! Only the table's lock is awaited. An object or a lane in use is an error at once.

use crate::error::{Holder, Result, StoreError};
use crate::medium::{Device, LockKey, LockMode};
use crate::slices::Wait;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

pub(in crate::store) const PATIENCE: Duration = Duration::from_secs(20);

pub(in crate::store) struct Patience(AtomicU64);

impl Default for Patience {
    fn default() -> Self {
        Patience(AtomicU64::new(PATIENCE.as_nanos() as u64))
    }
}

impl Patience {
    pub(in crate::store) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    pub(in crate::store) fn set(&self, wait: Duration) {
        self.0.store(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

pub(in crate::store) struct Deadline {
    waiting: Wait,
    wait: Duration,
    pause: Duration,
    longest_pause: Duration,
}

impl Deadline {
    pub(in crate::store) fn after(wait: Duration) -> Deadline {
        let (pause, longest_pause) = (Duration::from_micros(20), Duration::from_millis(5));
        Deadline { waiting: Wait::begin(), wait, pause, longest_pause }
    }

    pub(in crate::store) fn of_a_moment(wait: Duration) -> Deadline {
        Deadline { longest_pause: Duration::from_micros(200), ..Deadline::after(wait) }
    }

    pub(in crate::store) fn left(&self) -> Duration {
        self.wait.saturating_sub(self.waiting.elapsed())
    }

    pub(in crate::store) fn seconds(&self) -> f64 {
        self.wait.as_secs_f64()
    }

    pub(in crate::store) fn pause(&mut self, sleep: impl FnOnce(Duration)) -> bool {
        let left = self.left();
        sleep(self.pause.min(left));
        self.pause = (self.pause * 2).min(self.longest_pause);
        !left.is_zero() && !self.waiting.is_over()
    }
}

pub(in crate::store) fn lock_table(
    device: &dyn Device,
    mode: LockMode,
    deadline: &mut Deadline,
) -> Result<()> {
    while !device.try_lock(LockKey::Table, mode)? {
        if !deadline.pause(|moment| device.pause(moment)) {
            return Err(StoreError::TableBusy { seconds: deadline.seconds(), holder: table_holder(device) });
        }
    }
    Ok(())
}

pub(in crate::store) fn table_holder(device: &dyn Device) -> Holder {
    let writer = !matches!(device.probe(LockKey::Table), Ok(Some(LockMode::Shared)));
    match device.holder(LockKey::Table) {
        Some(process) => Holder::Process { process, writer },
        None => Holder::Unknown,
    }
}
