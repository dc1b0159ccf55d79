//! Anchors: something outside of the pool that keeps a number, by which an older state of a sealed
//! object is told from the newest.

mod command;
mod file;
mod tpm;

pub use command::CommandAnchor;
pub use file::FileAnchor;
pub use tpm::TpmAnchor;

use std::io;
use std::time::Duration;

/// The interval of anchors, unless they say otherwise.
const INTERVAL: Duration = Duration::from_secs(60);

/// Keeps a record of a sealed object out of reach of an attacker who has the pool. The record is a
/// line of text of at most 250 bytes, and is no secret.
///
/// An object is attached with its anchor by a key that has one
/// ([`SealKey::anchored`](crate::SealKey::anchored)).
pub trait Anchor: std::fmt::Debug + Send + Sync {
    /// The newest record; `None`: there was none yet.
    ///
    /// # Errors
    /// It cannot be told. The object is not attached.
    fn read(&self) -> io::Result<Option<String>>;

    /// Replaces the record: durable on return.
    ///
    /// # Errors
    /// It may be the new one or the former one.
    fn write(&self, record: &str) -> io::Result<()>;

    /// How long psyncs may go on without a new record. An older state from within that time, and
    /// from within the same attachment, is not told from the newest if the process dies.
    fn interval(&self) -> Duration {
        INTERVAL
    }

    /// A counter that goes with the records: they may lie where the pool does then. `None`: there
    /// is none.
    fn counter(&self) -> Option<&dyn Counter> {
        None
    }
}

/// A monotonic counter that no client can lower. Records of an anchor that has one are counted by
/// it and proved by the object's key, so that one that is put back is told from the newest. It
/// belongs to one object.
pub trait Counter: std::fmt::Debug + Send + Sync {
    /// Makes it, if there is none. Called before the first record of an object, or when its present
    /// state is taken for the newest.
    ///
    /// # Errors
    /// It cannot be made, or there is something else in its place.
    fn define(&self) -> io::Result<()>;

    /// Its value.
    ///
    /// # Errors
    /// It cannot be read, or there is none. The object is not attached.
    fn value(&self) -> io::Result<u64>;

    /// Adds one: durable on return.
    ///
    /// # Errors
    /// It may have been added or not.
    fn increment(&self) -> io::Result<()>;
}
