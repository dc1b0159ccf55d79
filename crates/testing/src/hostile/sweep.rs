//! Every single bit of a pool, flipped.

use super::anatomy::{Kind, structures};
use super::pool::Pool;
use super::whole::{Sight, repaired, report, shown};
use indelible_store::store::Severity;
use std::collections::BTreeMap;

/// What came of a flipped bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing noticed it, and every object shows what it did before.
    Harmless,
    /// Check reported it, repair put it right, and every object shows what it did before.
    Repaired,
    /// Check reported it; every object that can be attached shows what it did before.
    Reported,
    /// It lies in a batch that waits in a lane, and ends the lane there as a psync cut short would: objects
    /// show an earlier state, whole, and check reports nothing.
    Undone,
    /// It lies in an object's bytes, which have no checksum: the object shows it.
    Unprotected,
    /// Anything else: a promise is broken.
    Violation,
}

/// Regions of a pool, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// In a structure of this kind.
    In(Kind),
    /// In an object's primary, with its offset in the object.
    Object,
    /// In none of these.
    Rest,
}

/// Which region each byte of a pool is in.
pub struct Regions(Vec<(u64, u64, Region)>);

impl Regions {
    /// Of this pool; objects are where the table has them.
    ///
    /// # Panics
    /// If the pool, which is sound, cannot be opened.
    #[must_use]
    pub fn of(pool: &Pool) -> Regions {
        let image = pool.image();
        let mut all: Vec<_> = structures(&image)
            .iter()
            .map(|found| (found.offset, found.offset + found.len, Region::In(found.kind)))
            .collect();
        let store = indelible_store::store::Store::open(std::sync::Arc::new(image), crate::pool::process(5));
        let objects = store.and_then(|store| crate::pool::objects(&store)).expect("a sound pool");
        for object in objects {
            let start = object.entry.primary_offset();
            // An object may lie where a node was once.
            all.retain(|(from, _, _)| !(start..start + object.entry.extent_len()).contains(from));
            all.push((start, start + object.entry.size.get(), Region::Object));
        }
        all.sort_unstable();
        Regions(all)
    }

    /// Of one byte.
    #[must_use]
    pub fn at(&self, byte: u64) -> Region {
        let next = self.0.partition_point(|(from, _, _)| *from <= byte);
        match next.checked_sub(1).map(|at| self.0[at]) {
            Some((_, end, region)) if byte < end => region,
            _ => Region::Rest,
        }
    }
}

/// Counts of outcomes, by region.
pub type Tally = BTreeMap<(Region, Outcome), u64>;

/// Flips one bit and says what came of it; for a violation, with what was seen.
#[must_use]
pub fn flip(pool: &Pool, regions: &Regions, byte: u64, bit: u32) -> (Outcome, String) {
    let image = pool.image();
    image.flip(byte, bit);
    let region = regions.at(byte);
    let Some(report) = report(&image) else { return (Outcome::Violation, "check refuses".into()) };
    // The pools wait for recovery, which is worth a note and no finding about this bit.
    let found = report.findings.iter().any(|finding| finding.severity > Severity::Note);
    let sights = shown(&image, pool);
    let any = |wanted: fn(&Sight) -> bool| sights.iter().any(|(_, sight)| wanted(sight));
    let words = || format!("bit {bit} of byte {byte} ({region:?}): {sights:?} {:?}", report.findings);
    if any(|sight| matches!(sight, Sight::Other(_) | Sight::Missing)) {
        let own = matches!(region, Region::Object) && !any(|sight| matches!(sight, Sight::Missing));
        return (if own { Outcome::Unprotected } else { Outcome::Violation }, words());
    }
    let earlier = any(|sight| matches!(sight, Sight::Earlier));
    let refused = any(|sight| matches!(sight, Sight::Refused));
    if !found {
        return match (earlier, refused) {
            (false, false) => (Outcome::Harmless, String::new()),
            (true, false) if region == Region::In(Kind::Batch) => (Outcome::Undone, String::new()),
            _ => (Outcome::Violation, words()),
        };
    }
    let put_right = repaired(&image, false, false)
        .is_ok_and(|actions| actions.iter().all(|action| action.done && action.lost.is_none()));
    let whole = put_right && shown(&image, pool).iter().all(|(_, sight)| *sight == Sight::Same);
    (if whole { Outcome::Repaired } else { Outcome::Reported }, String::new())
}
