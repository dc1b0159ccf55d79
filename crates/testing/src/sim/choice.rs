//! Which pending writes a power cut leaves.

use super::model::{Model, Unit};
use crate::seed::derived;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// How a cut decides the undecided units: a function of the log.
#[derive(Clone, PartialEq, Eq)]
pub enum Choice {
    None,
    All,
    /// This write and earlier ones to its units persist, nothing else.
    Only(u64),
    /// All but this write, and later ones to its units, persist.
    AllBut(u64),
    /// A random subset of units. The seed also decides the shape: even, sparse or dense, one unit,
    /// all but one, all below or above an address, or writes in order with the last torn.
    Random(u64),
    Exact(u64),
    /// For each undecided unit, in order, its version; 0 is the durable content.
    Picks(Arc<[u32]>),
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::None => write!(f, "Choice::None"),
            Choice::All => write!(f, "Choice::All"),
            Choice::Only(event) => write!(f, "Choice::Only({event})"),
            Choice::AllBut(event) => write!(f, "Choice::AllBut({event})"),
            Choice::Random(seed) => write!(f, "Choice::Random({seed:#x})"),
            Choice::Exact(nth) => write!(f, "Choice::Exact({nth})"),
            Choice::Picks(picks) => write!(f, "Choice::Picks({picks:?})"),
        }
    }
}

impl Choice {
    pub(super) fn picks(&self, model: &Model) -> Vec<usize> {
        let units = model.pending().values();
        match *self {
            Choice::Picks(ref picks) => picks.iter().map(|pick| *pick as usize).collect(),
            Choice::None => vec![0; units.len()],
            Choice::All => units.map(|unit| unit.versions.len()).collect(),
            Choice::Only(event) => units.map(|unit| position(unit, event).map_or(0, |i| i + 1)).collect(),
            Choice::AllBut(event) => {
                units.map(|unit| position(unit, event).unwrap_or(unit.versions.len())).collect()
            }
            Choice::Random(seed) => random(model, &mut derived(seed, 0)),
            Choice::Exact(nth) => {
                let mut rest = nth;
                units
                    .map(|unit| {
                        let states = unit.versions.len() as u64 + 1;
                        let pick = rest % states;
                        rest /= states;
                        pick as usize
                    })
                    .collect()
            }
        }
    }
}

pub(super) fn undecided_events(model: &Model) -> Vec<u64> {
    let versions = model.pending().values().flat_map(|unit| &unit.versions);
    let events: BTreeSet<u64> = versions.map(|version| version.event).collect();
    events.into_iter().collect()
}

fn position(unit: &Unit, event: u64) -> Option<usize> {
    unit.versions.iter().position(|version| version.event == event)
}

fn random(model: &Model, rng: &mut fastrand::Rng) -> Vec<usize> {
    let full: Vec<usize> = model.pending().values().map(|unit| unit.versions.len()).collect();
    if full.is_empty() {
        return full;
    }
    let special = rng.usize(..full.len());
    let shape = rng.u8(..8);
    if shape == 7 {
        return in_order(model, rng);
    }
    let mut pick = |i: usize, all: usize| match shape {
        0 => rng.usize(..=all),
        1 => {
            if rng.u8(..8) == 0 {
                all
            } else {
                0
            }
        }
        2 => {
            if rng.u8(..8) == 0 {
                rng.usize(..all)
            } else {
                all
            }
        }
        3 => {
            if i == special {
                rng.usize(..all)
            } else {
                all
            }
        }
        4 => {
            if i == special {
                rng.usize(1..=all)
            } else {
                0
            }
        }
        5 => {
            if i < special {
                all
            } else {
                0
            }
        }
        _ => {
            if i < special {
                0
            } else {
                all
            }
        }
    };
    full.iter().enumerate().map(|(i, all)| pick(i, *all)).collect()
}

fn in_order(model: &Model, rng: &mut fastrand::Rng) -> Vec<usize> {
    let events = undecided_events(model);
    let torn = events[rng.usize(..events.len())];
    model
        .pending()
        .values()
        .map(|unit| {
            let before = unit.versions.iter().take_while(|v| v.event < torn).count();
            let hit = unit.versions.get(before).is_some_and(|v| v.event == torn);
            before + usize::from(hit && rng.bool())
        })
        .collect()
}
