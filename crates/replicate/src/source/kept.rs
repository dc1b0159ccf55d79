//! Objects that are as the snapshots of them that were shipped.

use super::{Known, Listed, Source};
use indelible_store::table::Key;

impl Source {
    /// Whether the pool has the object's snapshot still, and both are at this address: a change of
    /// addresses changes the pointers in both.
    pub(super) fn has_snapshot(&self, known: &Known, address: u64) -> bool {
        let (Some(still), Some((id, _))) = (&known.still, known.rests) else { return false };
        let found = self.store.find(still).map(|found| found.entry);
        known.attributes.address == address
            && found.is_ok_and(|found| found.id == id && found.address.get() == address)
    }

    /// Whether an object is as its snapshot, which is what was shipped last.
    pub(super) fn is_as_kept(&self, known: &Known, now: &Listed) -> bool {
        let (Some(still), Some((_, psyncs))) = (&known.still, known.rests) else { return false };
        let is_last = (known.attributes.psyncs, now.attributes.psyncs) == (psyncs, psyncs);
        let difference = || self.store.diff(still, &now.attributes.name, Key(&self.key));
        is_last
            && known.touched.is_empty()
            && known.attributes.size == now.attributes.size
            && self.has_snapshot(known, now.attributes.address)
            && difference().is_ok_and(|difference| difference.pages.is_empty())
    }
}
