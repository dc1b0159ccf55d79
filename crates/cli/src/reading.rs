//! Reads of objects, attached or not.

use crate::alike;
use crate::failure::{Failure, Result};
use crate::sealing::{self, SealArgs};
use indelible::{Error, ErrorKind, Pool, ReadObject};

/// Attaches for reading; beside a writer, the state of its newest psync. A sealed object needs its
/// seal key.
///
/// # Errors
/// The object has a writer, and the pool is read-only here, or has no room.
pub fn attach(pool: &Pool, name: &str, key: &[u8], seal: &SealArgs) -> Result<ReadObject> {
    if let Some(sealed) = sealing::attach_read(pool, name, key, seal)? {
        return Ok(sealed);
    }
    match pool.attach_read_with_key(name, key) {
        Err(held) if held.kind() == ErrorKind::Held => match pool.attach_snapshot_with_key(name, key) {
            Err(error) if error.kind() == ErrorKind::ReadOnly => Err(not_beside(held)),
            attached => Ok(attached?),
        },
        attached => attached.map_err(|error| alike::explain(pool, name, error)),
    }
}

/// An object with a writer, in a pool that is read-only here.
pub fn not_beside(held: Error) -> Failure {
    Failure::from(held).with_help(
        "to read beside a writer, the pool must be writable from here: get write access to it, or wait until the writer detaches",
    )
}
