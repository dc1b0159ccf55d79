use super::{
    Add, BTree, Change, CritBit, Entry, HashMap, Map, Pair, Parts, Plain32, RedBlack, SkipList, Space,
    Versions,
};
use crate::Result;
use crate::environment::Environment;
use crate::pattern::Random;
use std::collections::{BTreeMap, HashSet};

const BEFORE: usize = 500;

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
        Script::of(before, updates)
    }

    fn of(before: Vec<u64>, updates: Vec<u64>) -> Script {
        let mut after = BTreeMap::new();
        for key in before.iter().chain(&updates) {
            if after.remove(key).is_none() {
                after.insert(*key, value(*key));
            }
        }
        Script { before, updates, after }
    }

    pub fn with_updates(self, most: usize) -> Script {
        let Script { before, mut updates, .. } = self;
        updates.truncate(most);
        Script::of(before, updates)
    }
}

fn value(key: u64) -> u64 {
    !key
}

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

fn original<S: Space, E: Entry<S>, M: Map<S, E>>(script: &Script, space: &mut S) -> Result<M> {
    let map = space.step(|space| M::new(space))?;
    for keys in script.before.chunks(BEFORE) {
        space.step(|space| keys.iter().for_each(|key| operate(map, *key, space)))?;
    }
    Ok(map)
}

fn update<S: Space, E: Entry<S>, M: Map<S, E>>(
    environment: &Environment,
    map: M,
    script: &Script,
    space: &mut S,
) -> Result<f64> {
    let work = || script.updates.iter().try_for_each(|key| space.step(|space| operate(map, *key, space)));
    let (took, result) = environment.clock.processor_time(work);
    result?;
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
    Ok(took / script.updates.len() as f64)
}

pub struct Times {
    /// The whole conversion, divided by the operations.
    pub retain: f64,
    pub manual: f64,
    pub auto: f64,
    pub computed: Option<f64>,
}

fn manual<S: Space, F: Entry<S>, M: Map<S, Plain32>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<[f64; 2]> {
    let map: M = original(script, space)?;
    // SAFETY: a map of the space.
    let (took, map) = environment.clock.time(|| space.step(|space| unsafe { map.convert::<F>(space) }));
    Ok([took / script.updates.len() as f64, update(environment, map?, script, space)?])
}

fn automatic<S: Space, B: Entry<S>, F: Entry<S>, M: Map<S, B>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<f64> {
    let map: M = original(script, space)?;
    // SAFETY: later versions of the struct have its layout.
    update(environment, unsafe { map.recast::<F>() }, script, space)
}

fn extended<S: Space, B: Entry<S>, E: Entry<S>, F: Entry<S>, M: Map<S, B>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<f64> {
    let map: M = original(script, space)?;
    // SAFETY: later versions of the struct have its layout.
    unsafe {
        space.step(|space| map.recast::<E>().each(space, &mut |_, _| ()))?;
        update(environment, map.recast::<F>(), script, space)
    }
}

fn round<S: Space, V: Versions<S, 1, Rest = u64>, M: Map<S, Plain32>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<Times> {
    let [retain, manual] = manual::<S, V::Manual, M>(environment, script, space)?;
    let auto = automatic::<S, V::Before, V::Auto, M::Of<V::Before>>(environment, script, space)?;
    let mut computed = None;
    if V::COMPUTES {
        computed =
            Some(automatic::<S, V::Before, V::Computed, M::Of<V::Before>>(environment, script, space)?);
    }
    Ok(Times { retain, manual, auto, computed })
}

pub struct Steps {
    pub manual: f64,
    pub auto: f64,
    pub extended: f64,
    /// `extended`, without the check that the extension exists.
    pub unchecked: f64,
    pub deep: f64,
}

fn steps<S: Space, V: Parts<S, 1, Rest = u64>, M: Map<S, Plain32>>(
    environment: &Environment,
    script: &Script,
    space: &mut S,
) -> Result<Steps> {
    Ok(Steps {
        manual: manual::<S, V::Manual, M>(environment, script, space)?[1],
        auto: automatic::<S, V::Before, V::Auto, M::Of<V::Before>>(environment, script, space)?,
        extended: extended::<S, V::Before, V::Auto, V::Auto, M::Of<V::Before>>(environment, script, space)?,
        unchecked: extended::<S, V::Before, V::Auto, V::Unchecked, M::Of<V::Before>>(
            environment,
            script,
            space,
        )?,
        deep: automatic::<S, V::Before, V::Deep, M::Of<V::Before>>(environment, script, space)?,
    })
}

pub struct Bytes {
    pub reset: u64,
    pub manual: [u64; 2],
    pub automatic: [u64; 2],
}

fn bytes<S: Space, V: Versions<S, 1, Rest = u64>, M: Map<S, Plain32>>(
    script: &Script,
    space: &mut S,
) -> Result<Bytes> {
    space.stored();
    let map: M = original(script, space)?;
    let (reset, before) = (space.stored(), space.durable());
    // SAFETY: a map of the space.
    space.step(|space| unsafe { map.convert::<V::Manual>(space) })?;
    let manual = [space.stored(), space.durable() - before];
    let map: M::Of<V::Before> = original(script, space)?;
    space.stored();
    let before = [space.extended(), space.durable()];
    // SAFETY: later versions of the struct have its layout.
    space.step(|space| unsafe { map.recast::<V::Auto>().each(space, &mut |_, _| ()) })?;
    let automatic = [space.stored() + space.extended() - before[0], space.durable() - before[1]];
    Ok(Bytes { reset, manual, automatic })
}

type Round<S, T> = fn(&Environment, &Script, &mut S) -> Result<T>;

pub struct Programs<S> {
    pub name: &'static str,
    pub rounds: [Round<S, Times>; 2],
    pub steps: Round<S, Steps>,
    pub bytes: fn(&Script, &mut S) -> Result<Bytes>,
}

impl<S: Space> Programs<S>
where
    Change<Pair>: Parts<S, 1, Rest = u64>,
    Add<Pair>: Versions<S, 1, Rest = u64>,
{
    fn of<M: Map<S, Plain32>>() -> Self {
        Programs {
            name: M::NAME,
            rounds: [round::<S, Change<Pair>, M>, round::<S, Add<Pair>, M>],
            steps: steps::<S, Change<Pair>, M>,
            bytes: bytes::<S, Change<Pair>, M>,
        }
    }

    pub fn all() -> [Self; 5] {
        [
            Self::of::<SkipList<Plain32>>(),
            Self::of::<CritBit<Plain32>>(),
            Self::of::<BTree<Plain32>>(),
            Self::of::<RedBlack<Plain32>>(),
            Self::of::<HashMap<Plain32>>(),
        ]
    }
}
