use super::beside::{Addresses, Follows, Opener};
use super::reader::ReadObject;
use super::tracked::Finding;
use super::writer::Object;
use crate::error::{Cause, Result};
use crate::pool::{Pool, SealKey, Tracking};
use std::fmt;
use std::time::Duration;

/// Options of attaching an object: see [`Pool::attach_with`].
#[derive(Clone, Default)]
pub struct AttachOptions {
    key: Vec<u8>,
    seal: Option<SealKey>,
    tracking: Tracking,
    wait: Option<Duration>,
    anywhere: bool,
}

/// The same within the crate, where `finding` has one more choice.
#[derive(Clone, Copy)]
pub(crate) struct Attach<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) seal: Option<&'a SealKey>,
    pub(crate) finding: Finding,
    pub(crate) wait: Option<Duration>,
}

impl<'a> Attach<'a> {
    pub(crate) fn with_key(key: &'a [u8]) -> Self {
        Attach { key, seal: None, finding: Finding::Pool, wait: None }
    }
}

impl AttachOptions {
    /// No key, the pool's tracking, and the pool's wait.
    #[must_use]
    pub fn new() -> Self {
        AttachOptions::default()
    }

    /// The object's key for reading or writing.
    #[must_use]
    pub fn key(mut self, key: &[u8]) -> Self {
        key.clone_into(&mut self.key);
        self
    }

    /// A key of the sealed object.
    #[must_use]
    pub fn seal(mut self, seal: &SealKey) -> Self {
        self.seal = Some(seal.clone());
        self
    }

    /// How stores are tracked. `Auto`: as the [pool's options](crate::PoolOptions::tracking) say.
    /// Readers have none.
    #[must_use]
    pub fn tracking(mut self, tracking: Tracking) -> Self {
        self.tracking = tracking;
        self
    }

    /// How long to wait for an object in use, instead of [the pool's wait](Pool::set_wait).
    /// Snapshots wait for no writer.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// At addresses that the kernel chooses, each time at others: for snapshots, in any number of
    /// states beside the object itself. Pointers in them lead to the object's own addresses.
    #[must_use]
    pub fn anywhere(mut self, is: bool) -> Self {
        self.anywhere = is;
        self
    }

    pub(crate) fn is_anywhere(&self) -> bool {
        self.anywhere
    }

    pub(crate) fn attach(&self) -> Result<Attach<'_>, Cause> {
        if self.anywhere {
            return Err(Cause::Anywhere);
        }
        self.tracking.check()?;
        let finding = self.tracking.rung().map_or(Finding::Pool, Finding::By);
        Ok(Attach { key: &self.key, seal: self.seal.as_ref(), finding, wait: self.wait })
    }

    pub(crate) fn follows(&self) -> Follows {
        let addresses = if self.anywhere { Addresses::Any } else { Addresses::Own };
        Follows::new(&self.key, addresses, self.seal.as_ref().map(Opener::from))
    }
}

/// Shows no key.
impl fmt::Debug for AttachOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AttachOptions { key, seal, tracking, wait, anywhere } = self;
        let mut shown = f.debug_struct("AttachOptions");
        shown.field("has_key", &!key.is_empty()).field("sealed", &seal.is_some());
        shown.field("tracking", tracking).field("wait", wait).field("anywhere", anywhere).finish()
    }
}

impl Pool {
    /// As [`attach`](Pool::attach), with these options.
    ///
    /// ```
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
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`attach`](Pool::attach) and [`attach_sealed`](Pool::attach_sealed); `Unsupported`:
    /// this machine does not offer the tracking. `Unsuitable`: [anywhere](AttachOptions::anywhere).
    pub fn attach_with(&self, name: &str, options: &AttachOptions) -> Result<Object> {
        let attach = self.about("attach", name, options.attach())?;
        self.attach_as(name, &attach)
    }

    /// As [`attach_read`](Pool::attach_read), with these options.
    ///
    /// # Errors
    /// As for [`attach_read`](Pool::attach_read) and
    /// [`attach_read_sealed`](Pool::attach_read_sealed). `Unsuitable`:
    /// [anywhere](AttachOptions::anywhere).
    pub fn attach_read_with(&self, name: &str, options: &AttachOptions) -> Result<ReadObject> {
        let attach = self.about("attach", name, options.attach())?;
        self.attach_read_as(name, &attach)
    }

    /// As [`attach_snapshot`](Pool::attach_snapshot), with these options.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// # let pool = indelible::Pool::format(&path, 16 << 20)?;
    /// use indelible::AttachOptions;
    ///
    /// let mut prices = pool.create_attached("prices", 100_000)?;
    /// let anywhere = AttachOptions::new().anywhere(true);
    /// let before = pool.attach_snapshot_with("prices", &anywhere)?;
    /// prices.as_mut_slice()[0] = 7;
    /// prices.psync()?;
    /// let now = pool.attach_snapshot_with("prices", &anywhere)?;
    /// assert_eq!((before.as_slice()[0], now.as_slice()[0]), (0, 7));
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`attach_snapshot`](Pool::attach_snapshot) and
    /// [`attach_snapshot_sealed`](Pool::attach_snapshot_sealed).
    pub fn attach_snapshot_with(&self, name: &str, options: &AttachOptions) -> Result<ReadObject> {
        self.attach_beside(name, options.follows())
    }
}
