//! The models' programs on TPC-C. Each has a space of its own and leaves a checked database.

use super::check::check;
use super::load::load;
use super::requests::Request;
use super::transactions::{Seen, Transactions};
use super::tree::Node;
use super::{Database, Script, Space, Table};
use crate::Result;
use crate::environment::Environment;
use crate::retention::{Add, Body, Change, ORDER, Plain32, Times, TreeNode, Versions};
use std::collections::HashSet;

const STEP: usize = 50;
const DATE: u64 = 2;

pub struct Found {
    pub times: Times,
    pub reset: u64,
    pub retained: u64,
    pub durable: [u64; 2],
    pub nodes: u64,
    pub extended: u64,
}

pub type Make<'m, S> = &'m mut dyn FnMut() -> Result<S>;

type Round<S> = fn(&Environment, &Script, Make<'_, S>) -> Result<Found>;

pub struct Programs<S> {
    pub rounds: [Round<S>; 2],
}

impl<S: Space> Programs<S>
where
    Change<TreeNode>: Versions<S, ORDER, Rest = Body>,
    Add<TreeNode>: Versions<S, ORDER, Rest = Body>,
{
    pub fn new() -> Self {
        Programs { rounds: [round::<S, Change<TreeNode>>, round::<S, Add<TreeNode>>] }
    }
}

type Before = Plain32<Body, ORDER>;

fn round<S: Space, V: Versions<S, ORDER, Rest = Body>>(
    environment: &Environment,
    script: &Script,
    make: Make<'_, S>,
) -> Result<Found> {
    let mut space = make()?;
    let database = original::<S, Before>(script, &mut space)?;
    let (reset, before) = (space.stored(), space.durable());
    let (retain, result) = environment.clock.time(|| convert::<S, Before, V::Manual>(database, &mut space));
    let (retained, converted) = (space.stored(), space.durable() - before);
    let manual = update(environment, result?, script, &mut space)?;
    drop(space);
    let auto = automatic::<S, V::Before, V::Auto>(environment, script, make()?)?;
    same(&manual, &auto)?;
    let mut computed = None;
    if V::COMPUTES {
        let found = automatic::<S, V::Before, V::Computed>(environment, script, make()?)?;
        same(&manual, &found)?;
        computed = Some(found.took);
    }
    let retain = retain / script.updates.len() as f64;
    let times = Times { retain, manual: manual.took, auto: auto.took, computed };
    let durable = [converted, auto.durable.saturating_sub(manual.durable)];
    let [nodes, extended] = auto.nodes;
    Ok(Found { times, reset, retained, durable, nodes, extended })
}

fn same(manual: &Update, other: &Update) -> Result<()> {
    match manual.seen == other.seen {
        true => Ok(()),
        false => Err("TPC-C: users saw other numbers than those of P-MANUAL".into()),
    }
}

pub fn original<S: Space, N: Node<S>>(script: &Script, space: &mut S) -> Result<Database<N>> {
    let database = load::<S, N>(script.scale, script.seed, space)?;
    let (mut seen, mut date) = (Seen::default(), DATE);
    for requests in script.original.chunks(STEP) {
        space.step(|space| {
            for request in requests {
                Transactions { database, space, seen: &mut seen, date }.run(request);
                date += 1;
            }
        })?;
    }
    Ok(database)
}

/// P-RETAIN: all trees in one durable step.
pub fn convert<S: Space, N: Node<S>, F: Node<S>>(
    database: Database<N>,
    space: &mut S,
) -> Result<Database<F>> {
    space.step(|space| {
        // SAFETY: a database of the space.
        Table::ALL.into_iter().for_each(|table| unsafe { database.tree(table).convert::<S, F>(space) });
    })?;
    Ok(database.recast())
}

pub fn operate<S: Space, N: Node<S>>(
    database: Database<N>,
    requests: &[Request],
    first: u64,
    space: &mut S,
) -> Result<Seen> {
    let mut seen = Seen::default();
    for (date, request) in (first..).zip(requests) {
        let seen = &mut seen;
        space.step(|space| Transactions { database, space, seen, date }.run(request))?;
    }
    Ok(seen)
}

struct Update {
    took: f64,
    seen: Seen,
    durable: u64,
    nodes: [u64; 2],
}

fn update<S: Space, N: Node<S>>(
    environment: &Environment,
    database: Database<N>,
    script: &Script,
    space: &mut S,
) -> Result<Update> {
    let (before, durable) = (nodes(database), space.durable());
    let first = DATE + script.original.len() as u64;
    let work = || operate(database, &script.updates, first, space);
    let (took, seen) = environment.clock.processor_time(work);
    let took = took / script.updates.len() as f64;
    // SAFETY: nodes of the database.
    let is_extended = |node: &*mut N| before.contains(node) && unsafe { N::is_extended(*node) };
    let extended = nodes(database).iter().filter(|node| is_extended(node)).count();
    let durable = space.durable() - durable;
    let found = Update { took, seen: seen?, durable, nodes: [before.len() as u64, extended as u64] };
    check(database, space)?;
    Ok(found)
}

fn automatic<S: Space, B: Node<S>, F: Node<S>>(
    environment: &Environment,
    script: &Script,
    mut space: S,
) -> Result<Update> {
    let database = original::<S, B>(script, &mut space)?;
    update(environment, database.recast::<F>(), script, &mut space)
}

fn nodes<S: Space, N: Node<S>>(database: Database<N>) -> HashSet<*mut N> {
    let mut nodes = HashSet::new();
    for table in Table::ALL {
        // SAFETY: a database to which no thread stores meanwhile.
        unsafe {
            database.tree(table).nodes(&mut |node| {
                nodes.insert(node);
            });
        }
    }
    nodes
}
