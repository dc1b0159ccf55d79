//! The contents of a store.

use crate::authority::store_id;
use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::decode::header;
use crate::error::Result;
use crate::format::flag;
use crate::history::History;
use crate::names::{self, Position};
use crate::patient::Patient;
use crate::records::{Lease, decode, is_boundary};
use serde::Serialize;

/// A store's contents and owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// ID of the store.
    pub id: String,
    /// ID of the pool.
    pub pool: String,
    /// Epochs, ascending.
    pub epochs: Vec<Epoch>,
    /// Seconds since 1970 of the newest moment of which the last owner told; 0: none.
    pub shipped: u64,
    /// The last owner gave its epoch up.
    pub released: bool,
}

/// An epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Epoch {
    /// Its number.
    pub epoch: u64,
    /// Its owner.
    pub owner: String,
    /// Its beginning, in seconds since 1970.
    pub began: u64,
    /// Number of segments.
    pub segments: u64,
    /// Its owner can ship no more.
    pub ended: bool,
}

/// A moment that can be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    /// `EPOCH.SEQ`.
    pub at: String,
    /// In seconds since 1970.
    pub created: u64,
    /// It begins from nothing.
    pub full: bool,
    /// Bytes of the segment.
    pub bytes: u64,
}

/// Lists the epochs; `None`: no process has shipped.
///
/// # Errors
/// `Missing`, `Damaged`; the store's.
pub fn status(bucket: &dyn Bucket, clock: &dyn Clock) -> Result<Option<Status>> {
    let store = Patient { bucket, clock };
    let history = History::read(store)?;
    let Some(last) = history.last() else { return Ok(None) };
    let name = names::lease(last.epoch);
    let lease: Option<Lease> = store.find(&name)?.map(|bytes| decode(&bytes, &name)).transpose()?;
    let mut epochs = Vec::new();
    for record in history.all() {
        let (end, ended) = history.end(store, record.epoch)?;
        let (epoch, owner, began) = (record.epoch, record.owner.clone(), record.created);
        epochs.push(Epoch { epoch, owner, began, segments: end.seq, ended });
    }
    let shipped = lease.as_ref().map_or(0, |lease| lease.shipped);
    let released = lease.is_some_and(|lease| lease.released);
    let id = history.all().first().map(store_id).unwrap_or_default();
    Ok(Some(Status { id, pool: last.pool.clone(), epochs, shipped, released }))
}

/// Lists all moments, ascending; reads every segment's object.
pub fn moments(bucket: &dyn Bucket, clock: &dyn Clock) -> Result<Vec<Moment>> {
    let store = Patient { bucket, clock };
    let history = History::read(store)?;
    let mut all = Vec::new();
    for record in history.all() {
        let (end, _) = history.end(store, record.epoch)?;
        for seq in 1..=end.seq {
            let at = Position { seq, ..end };
            let bytes = store.get(&at.name(), "the epoch")?;
            if is_boundary(&bytes) {
                continue;
            }
            let header = header(&bytes, &at.name())?;
            let flags = header.flags.get();
            if flags & flag::MOMENT != 0 {
                let full = flags & flag::FULL != 0;
                let (at, created) = (at.to_string(), header.created.get());
                all.push(Moment { at, created, full, bytes: bytes.len() as u64 });
            }
        }
    }
    Ok(all)
}
