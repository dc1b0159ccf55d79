//! The programs of the models: before, P-RETAIN and P-MANUAL, P-AUTO; what each does, and what it takes.

use super::{Entry, Map, Plain32, Space};
use crate::Result;
use crate::environment::Environment;
use crate::pattern::Random;
use std::collections::{BTreeMap, HashSet};

/// Steps that make what was there before: it is not measured.
const BEFORE: usize = 500;
/// Operations that are timed together.
const PIECE: usize = 20;
/// Of a hundred pieces, so many count: the slowest are those in which other processes had the processor.
const KEPT: usize = 90;

/// The operations of the update program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    Delete,
    Insert,
    Random,
}

impl Mix {
    pub const ALL: [Mix; 3] = [Mix::Delete, Mix::Insert, Mix::Random];

    pub fn word(self) -> &'static str {
        match self {
            Mix::Delete => "DEL",
            Mix::Insert => "INS",
            Mix::Random => "RAND",
        }
    }
}

/// Keys, each of which is removed if it is there, and inserted if not.
pub struct Script {
    before: Vec<u64>,
    updates: Vec<u64>,
    after: BTreeMap<u64, u64>,
}

impl Script {
    pub fn new(mix: Mix, count: usize, random: &mut Random) -> Script {
        let mut keys: Vec<u64> = Vec::with_capacity(2 * count);
        let mut met = HashSet::new();
        while keys.len() < 2 * count {
            let key = random.below(u64::from(u32::MAX));
            if met.insert(key) {
                keys.push(key);
            }
        }
        let more = keys.split_off(count);
        let mut before = keys;
        let updates = match mix {
            Mix::Delete => {
                let mut updates = before.clone();
                random.shuffle(&mut updates);
                updates
            }
            Mix::Insert => more,
            Mix::Random => {
                before = (0..count).map(|_| before[random.below(count as u64) as usize]).collect();
                before.clone()
            }
        };
        let mut after = BTreeMap::new();
        for key in before.iter().chain(&updates) {
            if after.remove(key).is_none() {
                after.insert(*key, value(*key));
            }
        }
        Script { before, updates, after }
    }
}

fn value(key: u64) -> u64 {
    !key
}

/// One operation of the paper's program: a search, and a removal or an insertion.
#[inline]
fn operate<S: Space, E: Entry<S>, M: Map<S, E>>(map: M, key: u64, space: &mut S) {
    // SAFETY: a map of the space.
    unsafe {
        if map.has(key, space) {
            map.remove(key, space);
        } else {
            map.insert(key, value(key), space);
        }
    }
}

/// The map that the first version of the program leaves.
fn original<S: Space, E: Entry<S>, M: Map<S, E>>(script: &Script, space: &mut S) -> Result<M> {
    let map = space.step(|space| M::new(space))?;
    for keys in script.before.chunks(BEFORE) {
        space.step(|space| keys.iter().for_each(|key| operate(map, *key, space)))?;
    }
    Ok(map)
}

/// Nanoseconds an operation of the update program, each of them durable.
fn update<S: Space, E: Entry<S>, M: Map<S, E>>(
    environment: &Environment,
    map: M,
    script: &Script,
    space: &mut S,
) -> Result<f64> {
    let mut pieces = Vec::with_capacity(script.updates.len() / PIECE + 1);
    for keys in script.updates.chunks(PIECE) {
        let work = || keys.iter().try_for_each(|key| space.step(|space| operate(map, *key, space)));
        let (took, result) = environment.clock.time(work);
        result?;
        pieces.push(took / keys.len() as f64);
    }
    pieces.sort_by(f64::total_cmp);
    pieces.truncate((pieces.len() * KEPT).div_ceil(100));
    let took = pieces.iter().sum::<f64>() / pieces.len() as f64;
    let mut found = BTreeMap::new();
    // SAFETY: a map of the space.
    space.step(|space| unsafe {
        map.each(space, &mut |key, value| {
            found.insert(key, value);
        });
    })?;
    if found != script.after {
        return Err(format!("{}: the map is wrong", M::NAME).into());
    }
    let keys: Vec<u64> = found.into_keys().collect();
    for keys in keys.chunks(BEFORE) {
        space.step(|space| {
            for key in keys {
                // SAFETY: a map of the space.
                unsafe { map.remove(*key, space) };
            }
        })?;
    }
    Ok(took)
}

/// P-RETAIN, all of it one durable step, and P-MANUAL: nanoseconds an operation of each.
pub fn manual<S: Space, F: Entry<S>, M: Map<S, Plain32>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<[f64; 2]> {
    let map: M = original(script, space)?;
    // SAFETY: a map of the space.
    let (took, map) = environment.clock.time(|| space.step(|space| unsafe { map.convert::<F>(space) }));
    Ok([took / script.updates.len() as f64, update(environment, map?, script, space)?])
}

/// P-AUTO: nanoseconds an operation.
pub fn automatic<S: Space, E: Entry<S>, F: Entry<S>, M: Map<S, E>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<f64> {
    let map: M = original(script, space)?;
    // SAFETY: later versions of the struct have its layout.
    update(environment, unsafe { map.recast::<F>() }, script, space)
}

/// Bytes stored to: by the first program, by a conversion, by extending all entries.
pub fn bytes<S: Space, E: Entry<S>, F: Entry<S>, G: Entry<S>, M: Map<S, Plain32>, A: Map<S, E>>(
    script: &Script,
    space: &mut S,
    extended: impl Fn(&mut S) -> u64,
) -> Result<[u64; 3]> {
    space.stored();
    let map: M = original(script, space)?;
    let reset = space.stored();
    // SAFETY: a map of the space.
    space.step(|space| unsafe { map.convert::<F>(space) })?;
    let manual = space.stored();
    let map: A = original(script, space)?;
    space.stored();
    let before = extended(space);
    // SAFETY: later versions of the struct have its layout.
    space.step(|space| unsafe { map.recast::<G>().each(space, &mut |_, _| ()) })?;
    Ok([reset, manual, extended(space) - before])
}
