//! Small records in the store, as JSON with a checksum: beginnings and ends of epochs, leases.

use crate::error::{ReplicateError, Result};
use crate::format::{hash, hex};
use crate::names::Position;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Begins an epoch; put if absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EpochRecord {
    pub(crate) epoch: u64,
    /// Last segment of the epoch before; both 0: there is none.
    pub(crate) after_epoch: u64,
    pub(crate) after_seq: u64,
    pub(crate) pool: String,
    /// For people.
    pub(crate) owner: String,
    /// Tells attempts of two owners of one name apart.
    pub(crate) nonce: String,
    /// Seconds since 1970, for people.
    pub(crate) created: u64,
}

impl EpochRecord {
    pub(crate) fn after(&self) -> Position {
        Position { epoch: self.after_epoch, seq: self.after_seq }
    }
}

/// Ends an epoch: it takes the name of the segment that would follow the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Boundary {
    pub(crate) epoch: u64,
    /// Number of this name; the epoch's last segment is the one before.
    pub(crate) seq: u64,
    pub(crate) ended_by: String,
}

/// Says that an epoch's owner lives: only that owner puts it, and each time with another count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lease {
    pub(crate) epoch: u64,
    pub(crate) beat: u64,
    /// Another owner waits for so long without another beat.
    pub(crate) seconds: u64,
    /// Given up: the next claimant does not wait.
    pub(crate) released: bool,
    /// Seconds since 1970 of the newest shipped moment, for people.
    pub(crate) shipped: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed<T> {
    record: T,
    sum: String,
}

fn sum<T: Serialize>(record: &T) -> String {
    let text = serde_json::to_string(record).unwrap_or_default();
    hex(&hash(&[text.as_bytes()]))
}

pub(crate) fn encode<T: Serialize>(record: &T) -> Vec<u8> {
    let sealed = Sealed { sum: sum(record), record };
    serde_json::to_vec_pretty(&sealed).unwrap_or_default()
}

/// Reads a record.
///
/// # Errors
/// `Damaged`.
pub(crate) fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    let sealed: Sealed<T> = serde_json::from_slice(bytes)
        .map_err(|error| ReplicateError::damaged(name, format!("it is no such record: {error}")))?;
    match sealed.sum == sum(&sealed.record) {
        true => Ok(sealed.record),
        false => Err(ReplicateError::damaged(name, "its checksum does not fit")),
    }
}

/// Whether bytes at a segment's name are a boundary record.
pub(crate) fn is_boundary(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'{')
}
