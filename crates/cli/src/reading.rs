//! Objects to read, attached or not.

use crate::alike;
use crate::failure::{Failure, Result};
use crate::sealing::{self, SealArgs};
use indelible::{Error, ErrorKind, Pool, ReadObject};

/// Attaches an object for reading; beside a process that writes it, the state of its newest psync.
/// A sealed one by its seal key, and beside no writer.
///
/// # Errors
/// The object is written, and the pool cannot be written to from here, or has no room.
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

/// The failure to read an object beside its writer in a pool that cannot be written to.
pub fn not_beside(held: Error) -> Failure {
    Failure::from(held).with_help(
        "to read beside a writer, the pool must be writable from here: get write access to it, or wait until the writer detaches",
    )
}
