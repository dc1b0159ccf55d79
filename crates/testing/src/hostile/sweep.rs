use super::anatomy::{Kind, structures};
use super::pool::Pool;
use super::whole::{Sight, repaired, report, shown};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Unnoticed; every object shows the same bytes.
    Harmless,
    /// Reported and repaired; every object shows the same bytes.
    Repaired,
    /// Reported; every object that attaches shows the same bytes.
    Reported,
    /// In the last batch of a lane, undone as if cut short: objects show an earlier state, and
    /// check reports it.
    Undone,
    /// As [`Undone`](Outcome::Undone), and reported; but applied lines stay, so that an attach
    /// without a check sees two states mixed.
    Mixed,
    /// In an object's bytes, which have no checksum: the object shows it.
    Unprotected,
    Violation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    In(Kind),
    Object,
    /// Elsewhere.
    Rest,
}

pub struct Regions {
    regions: Vec<(u64, u64, Region)>,
    known: Vec<String>,
}

impl Regions {
    #[must_use]
    pub fn of(pool: &Pool) -> Regions {
        let image = pool.current();
        let found = structures(&image);
        let mut all: Vec<_> = found
            .iter()
            .map(|found| (found.offset, found.offset + found.len, Region::In(found.kind)))
            .collect();
        let store = indelible_store::store::Store::open(std::sync::Arc::new(image), crate::pool::process(5));
        let objects = store.and_then(|store| crate::pool::objects(&store)).expect("a sound pool");
        for object in objects {
            let start = object.entry.primary_offset();
            // Where a node was.
            all.retain(|(from, _, _)| !(start..start + object.entry.extent_len()).contains(from));
            all.push((start, start + object.entry.size.get(), Region::Object));
        }
        all.sort_unstable();
        let known = report(&pool.image()).expect("a sound pool");
        Regions { regions: all, known: known.findings.iter().map(ToString::to_string).collect() }
    }

    #[must_use]
    pub fn at(&self, byte: u64) -> Region {
        let next = self.regions.partition_point(|(from, _, _)| *from <= byte);
        match next.checked_sub(1).map(|at| self.regions[at]) {
            Some((_, end, region)) if byte < end => region,
            _ => Region::Rest,
        }
    }
}

pub type Counts = BTreeMap<(Region, Outcome), u64>;

/// Flips one bit; returns its outcome and, for a violation, the seen bytes.
#[must_use]
pub fn flip(pool: &Pool, regions: &Regions, byte: u64, bit: u32) -> (Outcome, String) {
    let image = pool.image();
    image.flip(byte, bit);
    let region = regions.at(byte);
    let Some(report) = report(&image) else { return (Outcome::Violation, "check refuses".into()) };
    let found = report.findings.iter().any(|finding| !regions.known.contains(&finding.to_string()));
    let sights = shown(&image, pool);
    let any = |wanted: &dyn Fn(&Sight) -> bool| sights.iter().any(|(_, sight)| wanted(sight));
    let words = || format!("bit {bit} of byte {byte} ({region:?}): {sights:?} {:#?}", report.findings);
    if any(&|sight| matches!(sight, Sight::Other(_))) {
        return match region {
            Region::Object => (Outcome::Unprotected, String::new()),
            Region::In(Kind::Batch) if found => (Outcome::Mixed, String::new()),
            _ => (Outcome::Violation, words()),
        };
    }
    if any(&|sight| matches!(sight, Sight::Earlier | Sight::Missing)) {
        let last = found && region == Region::In(Kind::Batch);
        return if last { (Outcome::Undone, String::new()) } else { (Outcome::Violation, words()) };
    }
    if !found {
        let refused = any(&|sight| *sight == Sight::Refused);
        return if refused { (Outcome::Violation, words()) } else { (Outcome::Harmless, String::new()) };
    }
    let put_right = repaired(&image, false, false)
        .is_ok_and(|actions| actions.iter().all(|action| action.done && action.lost.is_none()));
    let whole = put_right && shown(&image, pool).iter().all(|(_, sight)| *sight == Sight::Same);
    (if whole { Outcome::Repaired } else { Outcome::Reported }, String::new())
}
