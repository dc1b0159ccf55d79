//! Anchors: records outside of the pool that tell an older state of a sealed object from the
//! newest.

mod command;
mod file;
mod tpm;

pub use command::CommandAnchor;
pub use file::FileAnchor;
pub use tpm::TpmAnchor;

use std::io;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(60);

/// Keeps a record of a sealed object out of reach of an attacker with the pool: a line of at most
/// 250 bytes, and no secret.
pub trait Anchor: std::fmt::Debug + Send + Sync {
    /// The newest record; `None`: none yet.
    ///
    /// # Errors
    /// It cannot be read; the object is not attached.
    fn read(&self) -> io::Result<Option<String>>;

    /// Replaces the record: durable on return.
    ///
    /// # Errors
    /// The record is the new or the former one.
    fn write(&self, record: &str) -> io::Result<()>;

    /// How long psyncs go on without a new record. After a death, older states from within that
    /// time pass for the newest.
    fn interval(&self) -> Duration {
        INTERVAL
    }

    /// A counter for the records, which may then lie beside the pool. `None`: none.
    fn counter(&self) -> Option<&dyn Counter> {
        None
    }
}

/// A monotonic counter of one object that no client can lower. The object's key proves the records
/// that it counts, so that a restored record is detected.
pub trait Counter: std::fmt::Debug + Send + Sync {
    /// Makes the counter, if there is none, before an object's first record, or when its present
    /// state is accepted as the newest.
    ///
    /// # Errors
    /// It cannot be made, or something else is in its place.
    fn define(&self) -> io::Result<()>;

    /// Its value.
    ///
    /// # Errors
    /// It cannot be read, or does not exist; the object is not attached.
    fn value(&self) -> io::Result<u64>;

    /// Adds one: durable on return.
    ///
    /// # Errors
    /// It may have been added or not.
    fn increment(&self) -> io::Result<()>;
}
