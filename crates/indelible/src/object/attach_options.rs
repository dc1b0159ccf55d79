use super::tracked::Finding;
use super::writer::Object;
use crate::error::{Cause, Result};
use crate::pool::{Pool, Tracking};

/// Options of attaching an object for writing: see [`Pool::attach_with`].
#[derive(Clone, Debug, Default)]
pub struct AttachOptions {
    key: Vec<u8>,
    tracking: Tracking,
}

impl AttachOptions {
    /// No key, and the pool's tracking.
    #[must_use]
    pub fn new() -> Self {
        AttachOptions::default()
    }

    /// The object's write key.
    #[must_use]
    pub fn key(mut self, key: &[u8]) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// How stores are tracked. `Auto`: as the [pool's options](crate::PoolOptions::tracking) say.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = tracking;
        self
    }

    fn finding(&self) -> Result<Finding, Cause> {
        self.tracking.check()?;
        Ok(self.tracking.rung().map_or(Finding::Pool, Finding::By))
    }
}

impl Pool {
    /// As [`attach`](Pool::attach), with these options.
    ///
    /// ```
    /// # fn main() -> indelible::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// # let pool = indelible::Pool::format(&path, 16 << 20)?;
    /// # pool.create("log", 4096)?;
    /// use indelible::{AttachOptions, Tracking};
    ///
    /// // This attachment marks its stores; the others of the pool have them found.
    /// let mut log = pool.attach_with("log", &AttachOptions::new().tracking(Tracking::Explicit))?;
    /// log.range_mut(0..5).copy_from_slice(b"hello"); // marks the range
    /// log.psync()?; // one marked line: no page fault, no scan
    /// # assert_eq!(log.rung(), "explicit");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As for [`attach`](Pool::attach); `Unsupported`: this machine does not offer the tracking.
    pub fn attach_with(&self, name: &str, options: &AttachOptions) -> Result<Object> {
        let finding = self.about("attach", name, options.finding())?;
        self.attach_as(name, &options.key, finding)
    }
}
