use super::layout::ViewSlot;
use crate::error::Cause;
use crate::pool::Pool;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// As of the view's opening or the slot's setting: destroyed and moved objects are found when they
/// conflict.
#[derive(Debug, Default)]
pub(super) struct Placed {
    targets: HashMap<[u8; 16], usize>,
    slots: HashMap<usize, Object>,
    starts: BTreeMap<(u64, usize), u64>,
}

#[derive(Debug)]
struct Object {
    target: [u8; 16],
    addresses: Range<u64>,
}

impl Placed {
    pub(super) fn read(pool: &Pool, slots: &[ViewSlot]) -> Result<Placed, Cause> {
        let targets: Vec<[u8; 16]> = slots.iter().map(|slot| slot.target).collect();
        let mut placed = Placed::default();
        for (slot, addresses) in slots.iter().zip(addresses(pool, &targets)?) {
            placed.put(slot.slot, slot.target, addresses);
        }
        Ok(placed)
    }

    pub(super) fn put(&mut self, slot: usize, target: [u8; 16], addresses: Range<u64>) {
        self.clear(slot);
        self.targets.insert(target, slot);
        if !addresses.is_empty() {
            self.starts.insert((addresses.start, slot), addresses.end);
        }
        self.slots.insert(slot, Object { target, addresses });
    }

    pub(super) fn clear(&mut self, slot: usize) {
        let Some(Object { target, addresses }) = self.slots.remove(&slot) else { return };
        self.starts.remove(&(addresses.start, slot));
        if self.targets.get(&target) == Some(&slot) {
            self.targets.remove(&target);
        }
    }

    pub(super) fn in_the_way(
        &mut self,
        pool: &Pool,
        slot: usize,
        target: &[u8; 16],
        addresses: &Range<u64>,
    ) -> Result<Option<usize>, Cause> {
        if let Some(other) = self.targets.get(target).filter(|other| **other != slot) {
            return Ok(Some(*other));
        }
        while let Some(other) = self.overlapping(slot, addresses) {
            let known = &self.slots[&other];
            let target = known.target;
            let now = self::addresses(pool, &[target])?.pop().unwrap_or_default();
            if now == known.addresses {
                return Ok(Some(other));
            }
            self.put(other, target, now);
        }
        Ok(None)
    }

    fn overlapping(&self, but: usize, addresses: &Range<u64>) -> Option<usize> {
        let ends = |(&(_, slot), &end): (&(u64, usize), &u64)| {
            (slot != but && end > addresses.start).then_some(slot)
        };
        let before = self.starts.range(..(addresses.start, 0)).rev();
        // Objects do not overlap: only the last one before may reach so far.
        let reaching = before.take(2).find_map(ends);
        reaching.or_else(|| self.starts.range((addresses.start, 0)..(addresses.end, 0)).find_map(ends))
    }
}

fn addresses(pool: &Pool, targets: &[[u8; 16]]) -> Result<Vec<Range<u64>>, Cause> {
    let found = pool.inner().store.find_ids(targets)?.into_iter();
    let addresses = found.map(|found| {
        found.map_or(0..0, |object| {
            let start = object.entry.address.get();
            start..start + object.entry.reserved.get()
        })
    });
    Ok(addresses.collect())
}
