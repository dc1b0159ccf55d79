//! Time, which tests replace.

use std::time::{Duration, Instant};

/// A monotonic clock of this process. No two processes' clocks are compared.
pub trait Clock: Send + Sync {
    /// Time since a fixed moment of this process.
    fn now(&self) -> Duration;

    /// Waits; `false`: the process is to stop.
    fn wait(&self, time: Duration) -> bool;
}

/// The system's clock; a flag ends all waits.
pub struct SystemClock {
    begin: Instant,
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl SystemClock {
    /// A clock whose waits end once `stop` is set.
    #[must_use]
    pub fn new(stop: std::sync::Arc<std::sync::atomic::AtomicBool>) -> Self {
        SystemClock { begin: Instant::now(), stop }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.begin.elapsed()
    }

    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now().checked_add(time);
        loop {
            if self.stop.load(std::sync::atomic::Ordering::Acquire) {
                return false;
            }
            // Without an end, until the stop.
            let left = until.map_or(time, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}
