//! Detectors of power failures. Each has its own thread and reports changes to the guard.

mod file;
mod line;
mod nut;
mod signal;

pub use file::FileDetector;
pub use line::{LineDetector, Port, SerialPort};
pub use nut::NutDetector;
pub use signal::SignalDetector;

use crate::condition::Condition;
use crate::events::Sender;
use std::io;
use std::time::Duration;

/// Detects power failures.
pub trait Detector: Send {
    /// Its name, with the watched thing.
    fn name(&self) -> String;

    /// Most time from a failure to its report.
    fn latency(&self) -> Duration;

    /// The current condition.
    ///
    /// # Errors
    /// The detector can never work here.
    fn look(&mut self) -> io::Result<Condition>;

    /// Reports changes until the guard has ended ([`Watch::tell`] returns it) or the detector
    /// fails.
    ///
    /// # Errors
    /// The cause of its failure: the guard takes it for blind from then on.
    fn watch(&mut self, watch: &Watch) -> io::Result<()>;
}

/// A detector's channel to its guard.
pub struct Watch {
    pub(crate) sender: Sender,
    pub(crate) nth: usize,
}

impl Watch {
    /// Reports the condition. `false`: the guard has ended.
    #[must_use]
    pub fn tell(&self, condition: Condition) -> bool {
        self.sender.condition(self.nth, condition)
    }
}

fn poll(detector: &mut impl Detector, every: Duration, watch: &Watch) -> io::Result<()> {
    loop {
        let condition = detector.look()?;
        if !watch.tell(condition) {
            return Ok(());
        }
        std::thread::sleep(every);
    }
}
