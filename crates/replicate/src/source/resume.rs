//! Going on from the snapshots that an earlier run left, if the store states them.
//!
//! A snapshot never changes but with its addresses, and no two have one ID. So the replica of an
//! object is the snapshot that the store states for it, at the object's address, with the pages
//! that runs changed behind that statement.

use super::{Id, Known, Place, Source};
use crate::error::Result;
use crate::format::is_generated;
use crate::replica::{Left, Replica};
use indelible::Pool;
use indelible_store::format::entry::FLAG_BASE;
use std::collections::{BTreeMap, BTreeSet};

/// A snapshot of an earlier run to the same store.
struct Found {
    name: String,
    address: u64,
    psyncs: u64,
    size: u64,
}

/// A source, and names of the objects to ship whole.
pub(crate) type Resumed = (Source, Vec<String>);

impl Source {
    /// Whether an earlier run to the store left a snapshot.
    pub(crate) fn has_left(pool: &Pool, key: &[u8], store_id: &str) -> Result<bool> {
        Ok(!Source::named(pool, key, store_id)?.left(store_id)?.is_empty())
    }

    /// Goes on from a replica, and removes other snapshots of earlier runs to the store; `None`: no
    /// snapshot is as the replica states it.
    pub(crate) fn resume(
        pool: &Pool,
        key: &[u8],
        store_id: &str,
        replica: Replica,
    ) -> Result<Option<Resumed>> {
        let mut source = Source::named(pool, key, store_id)?;
        let found = source.left(store_id)?;
        let (mut known, mut kept, mut anew) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        for (id, left) in replica.objects {
            let Left { attributes: Some(attributes), still, touched, .. } = left else { continue };
            let proved = still.and_then(|stated| {
                let found = found.get(&stated.snapshot)?;
                let same = (found.psyncs, found.size) == (stated.psyncs, stated.size);
                (same && attributes.size == stated.size && attributes.address == found.address)
                    .then_some(found)
            });
            let is_fixed = attributes.flags & FLAG_BASE != 0;
            match proved {
                Some(found) => drop(kept.insert(found.name.clone())),
                None if !is_fixed => anew.push(attributes.name.clone()),
                None => {}
            }
            let rests = still.map(|stated| (stated.snapshot, stated.psyncs)).filter(|_| proved.is_some());
            let touched = if is_fixed { BTreeSet::new() } else { touched };
            let still = proved.map(|found| found.name.clone());
            let (place, tail, lines) = (Place::default(), None, Vec::new());
            known.insert(id, Known { attributes, place, still, rests, tail, touched, lines });
        }
        if kept.is_empty() {
            return Ok(None);
        }
        source.clear(store_id, &kept)?;
        source.known = known;
        Ok(Some((source, anew)))
    }

    /// IDs and psyncs of the objects as they were shipped.
    pub(crate) fn psyncs(&self) -> impl Iterator<Item = (Id, u64)> {
        self.known.iter().map(|(id, known)| (*id, known.attributes.psyncs))
    }

    /// Leaves the snapshots for the next run.
    pub(crate) fn leave(mut self) {
        self.known.clear();
        self.retired.clear();
    }

    fn left(&self, store_id: &str) -> Result<BTreeMap<Id, Found>> {
        let (own, mut left) = (super::own_prefix(store_id), BTreeMap::new());
        self.each(&mut |object, (psyncs, _)| {
            let name = object.entry.name();
            if object.entry.has(FLAG_BASE) && name.starts_with(&own) && is_generated(&name, super::PREFIX, 3)
            {
                let (address, size) = (object.entry.address.get(), object.entry.size.get());
                left.insert(object.entry.id, Found { name, address, psyncs, size });
            }
        })?;
        Ok(left)
    }
}
