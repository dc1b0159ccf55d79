//! Following and storing far pointers, beside plain ones (S2.28).

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell as Entry, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible::{CreateOptions, Far, FarEntry, FarTarget, Persist, Plain, Pool, Rights, Space};
use std::cell::Cell;
use std::hint::black_box;
use std::time::Instant;

const NODES: usize = 1024;
const ENTRIES: usize = 1000;

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Node {
    #[persist(target)]
    next: Far<Node>,
    value: u64,
}

struct PlainNode<'n> {
    next: Cell<Option<&'n PlainNode<'n>>>,
    value: u64,
}

fn order() -> Vec<usize> {
    let (mut order, mut state): (Vec<usize>, u64) = ((0..NODES).collect(), 1);
    for left in (1..NODES).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(left, (state >> 33) as usize % (left + 1));
    }
    order
}

fn ring(space: &mut Space, ids: &[[u8; 16]]) -> Result<Far<Node>> {
    let places = (0..NODES)
        .map(|node| space.create(&ids[node % ids.len()], Node { next: Far::null(), value: node as u64 }));
    let places = places.collect::<indelible::Result<Vec<_>>>()?;
    let mut order = order();
    if ids.len() == 2 {
        let (even, odd): (Vec<usize>, Vec<usize>) = order.iter().partition(|node| *node % 2 == 0);
        order = even.into_iter().zip(odd).flat_map(|(even, odd)| [even, odd]).collect();
    }
    for (at, node) in order.iter().enumerate() {
        let next = order[(at + 1) % NODES];
        let home = &ids[node % ids.len()];
        let pointer = space.far(home, &ids[next % ids.len()], places[next], Rights::READ)?;
        space.get_mut(home, places[*node])?.next = pointer;
    }
    Ok(places[order[0]])
}

fn each(count: usize, work: impl FnOnce() -> Result<u64>) -> Result<f64> {
    let start = Instant::now();
    black_box(work()?);
    Ok(start.elapsed().as_nanos() as f64 / count as f64)
}

fn walk(space: &Space, home: &[u8; 16], first: Far<Node>) -> Result<u64> {
    let mut at = space.get(home, first)?;
    let mut sum = 0;
    for _ in 0..NODES {
        sum += at.value;
        at = at.follow(at.next)?.ok_or("the ring is open")?;
    }
    Ok(sum)
}

fn walk_ways(space: &Space, homes: [&[u8; 16]; 2], first: Far<Node>) -> Result<u64> {
    let mut at = space.get(homes[0], first)?;
    let there = space.home(homes[0])?.way(at.next.index())?;
    let back = there.target().way(there.get(at.next)?.next.index())?;
    let mut sum = 0;
    for _ in 0..NODES / 2 {
        let next = there.get(at.next)?;
        sum += at.value + next.value;
        at = back.get(next.next)?;
    }
    Ok(sum)
}

fn link<'n>(nodes: &'n [PlainNode<'n>]) {
    let order = order();
    for (at, node) in order.iter().enumerate() {
        nodes[*node].next.set(Some(&nodes[order[(at + 1) % NODES]]));
    }
}

fn walk_plain<'n>(nodes: &'n [PlainNode<'n>]) -> u64 {
    let (mut at, mut sum) = (&nodes[0], 0);
    for _ in 0..NODES {
        sum += at.value;
        at = at.next.get().unwrap_or(at);
    }
    sum
}

fn entries(
    space: &mut Space,
    home: &[u8; 16],
    target: &[u8; 16],
    place: Far<Node>,
) -> Result<Vec<Far<Node>>> {
    let mut pointers = Vec::new();
    for number in 0..ENTRIES as u128 {
        let entry = |id| FarEntry { target: FarTarget::Object(id), rights: Rights::READ };
        let pointer = space.far_by(home, &entry((1 << 100 | number).to_le_bytes()), place)?;
        space.retarget(home, pointer.index(), &entry(*target))?;
        pointers.push(pointer);
    }
    Ok(pointers)
}

/// Makes a pointer to each place in the second object, and stores it in a node of the first.
fn store(space: &mut Space, [home, target]: [&[u8; 16]; 2], places: &[Far<Node>]) -> Result<u64> {
    for (at, place) in places.iter().enumerate() {
        let pointer = space.far(home, target, places[places.len() - 1 - at], Rights::READ)?;
        space.get_mut(home, *place)?.next = pointer;
    }
    Ok(places.len() as u64)
}

/// As [`store`] with references; the index is checked as a far pointer's place is.
fn store_plain<'n>(nodes: &'n [PlainNode<'n>], order: &[usize]) -> u64 {
    for (at, node) in order.iter().enumerate() {
        nodes[*node].next.set(nodes.get(order[order.len() - 1 - at]));
    }
    order.len() as u64
}

const ROWS: [(&str, f64); 7] = [
    ("within the object", 0.3),
    ("to another object, by a handle for the entry", 1.0),
    ("to another object, looked up before", 5.0),
    ("to another object, looked up for the first time", 20.0),
    ("made, the entry is there", 10.0),
    ("made and stored, within the object", 5.0),
    ("made and stored, to another object", 12.0),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool: Pool = environment.pool(Medium::Memory, "pointers", 64 << 20)?;
    let mut space = Space::new();
    space.add(&pool);
    let mut ids = Vec::new();
    for name in ["alone", "left", "right", "entries", "stored"] {
        pool.create_with(name, &CreateOptions::new(4 << 20).position_independent(true))?;
        ids.push(space.attach(&pool, name)?);
    }
    let inside = ring(&mut space, &ids[..1])?;
    let across = ring(&mut space, &ids[1..3])?;
    let target = space.create(&ids[1], Node { next: Far::null(), value: 1 })?;
    let pointers = entries(&mut space, &ids[3], &ids[1], target)?;
    let places =
        (0..NODES).map(|value| space.create(&ids[4], Node { next: Far::null(), value: value as u64 }));
    let places = places.collect::<indelible::Result<Vec<_>>>()?;
    let nodes: Vec<PlainNode<'_>> =
        (0..NODES).map(|value| PlainNode { next: Cell::new(None), value: value as u64 }).collect();
    link(&nodes);
    let other: Vec<PlainNode<'_>> =
        (0..NODES).map(|_| PlainNode { next: Cell::new(None), value: 0 }).collect();
    let in_order: Vec<usize> = (0..NODES).collect();
    let (rounds, repeat) = (if environment.quick { 21 } else { 201 }, 16);
    let bar = progress(rounds, "pointers");
    let (mut floor, mut plain_store) = (Samples::default(), Samples::default());
    let mut samples: [Samples; ROWS.len()] = Default::default();
    for round in 0..=rounds {
        let mut took = [0.0; ROWS.len()];
        let base = each(repeat * NODES, || Ok((0..repeat).map(|_| walk_plain(black_box(&nodes))).sum()))?;
        for (row, home, first) in [(0, &ids[0], inside), (2, &ids[1], across)] {
            took[row] = each(repeat * NODES, || (0..repeat).map(|_| walk(&space, home, first)).sum())?;
        }
        took[1] = each(repeat * NODES, || {
            (0..repeat).map(|_| walk_ways(&space, [&ids[1], &ids[2]], across)).sum()
        })?;
        space.resolve_again();
        took[3] = each(ENTRIES, || {
            let home = space.home(&ids[3])?;
            pointers.iter().map(|pointer| Ok(home.get(*pointer)?.value)).sum()
        })?;
        took[4] = each(NODES, || {
            let stored = (0..NODES).map(|_| Ok(space.far(&ids[1], &ids[2], across, Rights::READ)?.word()));
            stored.map(|word: Result<u64>| word).try_fold(0_u64, |sum, word| Ok(sum.wrapping_add(word?)))
        })?;
        let stored = each(repeat * NODES, || {
            Ok((0..repeat).map(|_| store_plain(black_box(&other), black_box(&in_order))).sum())
        })?;
        for (row, target) in [(5, &ids[4]), (6, &ids[1])] {
            took[row] = each(repeat * NODES, || {
                (0..repeat).map(|_| store(&mut space, [&ids[4], target], &places)).sum()
            })?;
        }
        if round > 0 {
            floor.push(base);
            plain_store.push(stored);
            let bases = [base, base, base, base, base, stored, stored];
            let beyond = took.into_iter().zip(bases).map(|(took, base)| took - base);
            samples.iter_mut().zip(beyond).for_each(|(samples, beyond)| samples.push(beyond));
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let cell = |samples: &Samples| samples.spread().map_or(Entry::Empty, Spread::into);
    let mut table = Table::new(
        "Nanoseconds of a far pointer, beyond those of a plain one",
        &[("pointer", Unit::Text), ("time", Unit::Nanoseconds)],
    );
    table.row(vec!["a plain pointer, in all".into(), cell(&floor)]);
    table.row(vec!["a plain store of one, in all".into(), cell(&plain_store)]);
    for ((what, goal), samples) in ROWS.iter().zip(&samples) {
        table.row(vec![(*what).into(), cell(samples)]);
        section.goals.push(Goal::at_most(
            format!("{what}: beyond a plain pointer"),
            Unit::Nanoseconds,
            *goal,
            samples.median(),
        ));
    }
    section.tables.push(table);
    section.notes.push(
        "Rings of 1,024 nodes, which fit into the caches; all take turns within a round. Following a pointer checks that its target lies within its object, aligned.".into(),
    );
    drop(space);
    discard(pool);
    Ok(())
}
