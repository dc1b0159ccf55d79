//! Detectors of power failures. Each has a thread of its own, and tells the guard whenever its
//! condition changes.

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

/// A way to know that the power fails.
pub trait Detector: Send {
    /// Its name, with the thing that it watches.
    fn name(&self) -> String;

    /// The time, at most, from a failure until it tells.
    fn latency(&self) -> Duration;

    /// The condition now.
    ///
    /// # Errors
    /// It can never work here.
    fn look(&mut self) -> io::Result<Condition>;

    /// Tells changes, until the guard has ended ([`Watch::tell`] returns it), or it cannot any
    /// more.
    ///
    /// # Errors
    /// The reason why it cannot: the guard takes it for blind from then on.
    fn watch(&mut self, watch: &Watch) -> io::Result<()>;
}

/// The way from a detector to its guard.
pub struct Watch {
    pub(crate) sender: Sender,
    pub(crate) nth: usize,
}

impl Watch {
    /// Tells the condition. `false`: the guard has ended.
    #[must_use]
    pub fn tell(&self, condition: Condition) -> bool {
        self.sender.condition(self.nth, condition)
    }
}

/// Looks again and again, and tells the conditions it finds.
fn poll(detector: &mut impl Detector, every: Duration, watch: &Watch) -> io::Result<()> {
    loop {
        let condition = detector.look()?;
        if !watch.tell(condition) {
            return Ok(());
        }
        std::thread::sleep(every);
    }
}
