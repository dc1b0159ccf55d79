//! The newest moment of a store, as far as a next run needs it to ship only what changed since.
//!
//! The segments are read from the newest back to the one that begins from nothing, and proved as a
//! chain. Of each object the last statement of a snapshot counts, with the pages that runs changed
//! behind it: the replica differs from that snapshot in these pages alone.

use crate::decode::{Change, Segment, StillRecord};
use crate::error::{ReplicateError, Result};
use crate::format::{Hash, Header, pages_of};
use crate::history::History;
use crate::names::Position;
use crate::patient::Patient;
use crate::records::is_boundary;
use indelible_store::store::Attributes;
use std::collections::{BTreeMap, BTreeSet};

/// Segments that a restore reads, at most, before a run begins from nothing.
const LONGEST: u32 = 4096;

/// The newest moment of a store, which [`Authority::replica`](crate::Authority::replica) reads.
#[derive(Debug)]
pub struct Replica {
    pub(crate) at: Position,
    /// ID and hash of the segment that completes it.
    pub(crate) parent: ([u8; 16], Hash),
    pub(crate) depth: u32,
    pub(crate) created: u64,
    pub(crate) objects: BTreeMap<[u8; 16], Left>,
}

/// An object of the replica.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// `None`: it is no more.
    pub(crate) attributes: Option<Attributes>,
    pub(crate) still: Option<StillRecord>,
    /// Pages that runs changed since.
    pub(crate) touched: BTreeSet<u64>,
    /// Earlier changes do not count.
    closed: bool,
}

impl Replica {
    /// Reads the newest moment before an epoch; `None`: there is none of this pool.
    ///
    /// # Errors
    /// `Missing`, `Damaged`, `Foreign`; `TooLong`; the store's.
    pub(crate) fn read(
        store: Patient<'_>,
        history: &History,
        epoch: u64,
        pool: &[u8; 16],
    ) -> Result<Option<Replica>> {
        let (mut replica, mut later): (Option<Replica>, Option<(Position, Header)>) = (None, None);
        let mut next = history.before(Position { epoch, seq: 0 });
        while let Some(at) = next {
            next = history.before(at);
            let name = at.name();
            let needs = later.map_or_else(|| "the run".to_owned(), |(at, _)| at.name());
            let bytes = store.get(&name, &needs)?;
            if is_boundary(&bytes) {
                return Err(ReplicateError::damaged(&name, "it ends the epoch before its end"));
            }
            let segment = Segment::read(&bytes, &name)?;
            let header = segment.header;
            if (header.epoch.get(), header.seq.get()) != (at.epoch, at.seq) {
                let why = format!("it was put as {}.{}", header.epoch, header.seq);
                return Err(ReplicateError::damaged(&name, why));
            }
            // An epoch continues the last moment before it.
            if later.is_none_or(|(later, _)| later.epoch != at.epoch) && !segment.is_moment() {
                continue;
            }
            if let Some((_, later)) = later {
                let follows = later.parent == header.id && later.parent_hash == segment.whole;
                let deeper = later.depth.get() == header.depth.get() + 1;
                if !follows || !deeper || later.pool != header.pool {
                    let why = "it was made after another segment".to_owned();
                    return Err(ReplicateError::Foreign { name: needs, before: name, why });
                }
            } else if header.pool != *pool {
                return Ok(None);
            }
            let found = replica.get_or_insert_with(|| Replica {
                at,
                parent: (header.id, segment.whole),
                depth: header.depth.get(),
                created: header.created.get(),
                objects: BTreeMap::new(),
            });
            if found.depth >= LONGEST {
                return Err(ReplicateError::TooLong { segments: found.depth });
            }
            let full = segment.is_full();
            segment.changes.into_iter().rev().for_each(|change| found.fold_back(change));
            if full {
                found.objects.retain(|_, left| left.attributes.is_some());
                return Ok(replica);
            }
            later = Some((at, header));
        }
        match later {
            None => Ok(None),
            Some((at, _)) => Err(ReplicateError::damaged(&at.name(), "its chain begins from nothing")),
        }
    }

    /// Adds the change before those so far.
    fn fold_back(&mut self, change: Change) {
        let id = match &change {
            Change::Object(attributes) => attributes.id,
            Change::Gone(id) => *id,
            Change::Runs(runs) => runs.id,
            Change::Still(still) => still.id,
        };
        let left = self.objects.entry(id).or_default();
        match change {
            Change::Object(attributes) => {
                // Behind its end, the object is no more.
                if left.attributes.is_none() && !left.closed || left.is_open_record() {
                    left.attributes = Some(attributes);
                }
            }
            Change::Gone(_) => left.closed = true,
            Change::Still(still) if !left.closed => {
                left.still = Some(still);
                left.closed = true;
            }
            Change::Runs(runs) if !left.closed => {
                left.touched
                    .extend(runs.iter().flat_map(|(offset, bytes)| pages_of(offset, bytes.len() as u64)));
            }
            Change::Still(_) | Change::Runs(_) => {}
        }
    }
}

impl Left {
    /// The statement of its snapshot was read, and the object's record before it was not.
    fn is_open_record(&self) -> bool {
        self.attributes.is_none() && self.still.is_some()
    }
}
