//! Cost of an extension (first access, later ones, other fields), and of unchanged roots.

use crate::Result;
use crate::environment::{Environment, Medium, discard};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::pattern::Random;
use crate::stats::{Samples, Spread};
use indelible::collections::{PString, PVec};
use indelible::retention::{Extensions, extendible};
use indelible::{CreateOptions, Heap, Persist, Pool, Tracking};
use std::hint::black_box;

const SIZE: u64 = 128 << 20;
const EXTENSION: usize = 32;
const ROOTS: usize = 1_000;
const FIRST: f64 = 60.0;
const ROOT: f64 = 1_000.0;

#[extendible]
#[derive(Persist)]
#[repr(C)]
struct Item<'h> {
    number: u64,
    #[extension(1, init = |item| item.number)]
    wide: u64,
}

#[derive(Persist, Clone, Copy)]
#[repr(C)]
struct Plain {
    number: u64,
    wide: u64,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Record<'h> {
    name: PString<'h>,
    numbers: PVec<'h, u64>,
    place: Place,
}

#[derive(Persist, Default)]
#[repr(C)]
struct Place {
    x: f64,
    y: f64,
    level: u32,
}

fn each(environment: &Environment, count: usize, work: impl FnOnce()) -> f64 {
    environment.clock.time(work).0 / count as f64
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool = |name: &str, tracking| {
        let pool = environment.pool_tracking(Medium::Memory, tracking, name, SIZE + (64 << 20))?;
        pool.create_with("heap", &CreateOptions::new(SIZE).sparse(true))?;
        Ok::<Pool, crate::Error>(pool)
    };
    let items = pool("retention-access", Tracking::Auto)?;
    accesses(environment, &items, section)?;
    discard(items);
    let mut table = Table::new(
        format!("{ROOTS} roots of unchanged types: nanoseconds a root"),
        &[
            ("", Unit::Text),
            ("opened first after the attach", Unit::Nanoseconds),
            ("again", Unit::Nanoseconds),
        ],
    );
    for (name, tracking) in [("indelible", Tracking::Auto), ("indelible, explicit", Tracking::Explicit)] {
        let pool = pool("retention-roots", tracking)?;
        let both = roots(environment, &pool)?;
        discard(pool);
        let what = format!("a root of an unchanged type, among {ROOTS}, opened first, {name}");
        section.goals.push(Goal::at_most(what, Unit::Nanoseconds, ROOT, both[0].median()));
        let cells = both.iter().map(|samples| samples.spread().map_or(Cell::Empty, Spread::into));
        table.row(std::iter::once(name.into()).chain(cells).collect());
    }
    section.tables.push(table);
    Ok(())
}

#[derive(Default)]
struct Found {
    allocation: Samples,
    first: Samples,
    store: Samples,
    load: Samples,
    view: Samples,
    plain: Samples,
    other: Samples,
}

fn accesses(environment: &Environment, pool: &Pool, section: &mut Section) -> Result<()> {
    let (count, rounds) = if environment.quick { (2_000, 3) } else { (100_000, 9) };
    let mut heap = Heap::format(pool.attach("heap")?)?;
    let mut order: Vec<usize> = (0..count).collect();
    let mut found = Found::default();
    for round in 0..=rounds {
        Random::new(round).shuffle(&mut order);
        let mut blocks = Vec::with_capacity(count);
        let allocation = each(environment, count, || {
            blocks.extend((0..count).filter_map(|_| heap.malloc(EXTENSION).ok()));
        });
        for block in blocks {
            // SAFETY: a block that no other code knows of.
            #[allow(unsafe_code)]
            unsafe { heap.free(block.as_ptr()) }?;
        }
        let (items, place) = heap.root_and_heap::<PVec<'_, Item<'_>>>("items")?;
        let item = |number| Item { number, extensions: Extensions::new_in(place) };
        items.extend((0..count as u64).map(item));
        let first = each(environment, count, || {
            items.iter_mut().for_each(|item| *black_box(item.wide_mut()) += 1);
        });
        let store = each(environment, count, || order.iter().for_each(|at| *items[*at].wide_mut() += 1));
        let load = each(environment, count, || {
            black_box(order.iter().fold(0, |sum: u64, at| sum.wrapping_add(items[*at].wide())));
        });
        let view = each(environment, count, || {
            order.iter().for_each(|at| *items[*at].extended().wide += 1);
        });
        let other = each(environment, count, || {
            black_box(order.iter().fold(0, |sum: u64, at| sum.wrapping_add(items[*at].number)));
        });
        heap.drop_root::<PVec<'_, Item<'_>>>("items")?;
        let plains = heap.root_or_default::<PVec<'_, Plain>>("plain")?;
        plains.extend((0..count as u64).map(|number| Plain { number, wide: number }));
        let plain = each(environment, count, || {
            black_box(order.iter().fold(0, |sum: u64, at| sum.wrapping_add(plains[*at].wide)));
        });
        heap.drop_root::<PVec<'_, Plain>>("plain")?;
        if round > 0 {
            let all =
                [&mut found.allocation, &mut found.first, &mut found.store, &mut found.load, &mut found.view];
            all.into_iter().zip([allocation, first, store, load, view]).for_each(|(all, one)| all.push(one));
            found.plain.push(plain);
            found.other.push(other);
        }
    }
    let mut table = Table::new(
        format!("Accesses to {count} values: nanoseconds each"),
        &[("access", Unit::Text), ("took", Unit::Nanoseconds)],
    );
    for (what, samples) in [
        ("an allocation of as many bytes as an extension", &found.allocation),
        ("first store to an extension, in order", &found.first),
        ("later store, in random order", &found.store),
        ("later load, in random order", &found.load),
        ("later store by extended(), in random order", &found.view),
        ("load of another field, in random order", &found.other),
        ("load of a plain struct's field, in random order", &found.plain),
    ] {
        table.row(vec![what.into(), samples.spread().map_or(Cell::Empty, Spread::into)]);
    }
    let more = found.first.median() - found.allocation.median();
    section.goals.push(Goal::at_most(
        "first access of an extension, more than an allocation",
        Unit::Nanoseconds,
        FIRST,
        more,
    ));
    section.tables.push(table);
    Ok(())
}

fn roots(environment: &Environment, pool: &Pool) -> Result<[Samples; 2]> {
    let rounds = if environment.quick { 3 } else { 15 };
    let names: Vec<String> = (0..ROOTS).map(|number| format!("record {number}")).collect();
    let mut heap = Heap::format(pool.attach("heap")?)?;
    for name in &names {
        heap.root_or_default::<Record<'_>>(name)?;
    }
    heap.psync()?;
    drop(heap);
    let (mut first, mut again) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        let mut heap = Heap::open(pool.attach("heap")?)?;
        for samples in [&mut first, &mut again] {
            let (took, result) = environment.clock.time(|| {
                names.iter().try_for_each(|name| {
                    heap.root_mut::<Record<'_>>(name).map(|record| {
                        black_box(record);
                    })
                })
            });
            result?;
            samples.push(took / ROOTS as f64);
        }
    }
    Ok([first, again])
}
