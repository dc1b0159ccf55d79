//! Values of bytes by the usual ways, beside one append of all bytes; keys of bytes beside text.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible::collections::{HeapRef, PHashMap, PString, PVec};
use indelible::{CreateOptions, Heap, Persist};
use indicatif::ProgressBar;
use std::hint::black_box;
use std::time::Instant;

const OBJECT: u64 = 256 << 20;
const VALUES: [usize; 3] = [64, 4 << 10, 1 << 20];
const KEYS: [usize; 3] = [16, 64, 1 << 10];
const COUNT: usize = 1_000;

#[derive(Persist, Default)]
#[repr(C)]
struct Data<'h> {
    list: PVec<'h, PVec<'h, u8>>,
    map: PHashMap<'h, u64, PVec<'h, u8>>,
    texts: PHashMap<'h, PString<'h>, u64>,
    names: PHashMap<'h, PVec<'h, u8>, u64>,
}

type Way = for<'a, 'h> fn(&'a [u8], HeapRef<'h>, &'a mut Data<'h>) -> Result<()>;

/// Name, whether the length is known beforehand, the way. The first is the floor: a large enough
/// block and one copy.
const WAYS: [(&str, bool, Way); 6] = [
    ("with_capacity_in, try_append", true, |bytes, heap, _| {
        let mut value = PVec::with_capacity_in(bytes.len(), heap);
        value.try_append(bytes)?;
        drop(value);
        Ok(())
    }),
    ("push(&bytes[..])", true, |bytes, _, data| {
        data.list.push(bytes);
        drop(data.list.pop());
        Ok(())
    }),
    ("insert(key, &bytes[..])", true, |bytes, _, data| {
        data.map.insert(7, bytes);
        drop(data.map.remove(&7));
        Ok(())
    }),
    ("clone()", true, |bytes, _, data| {
        if data.list.is_empty() {
            data.list.push(bytes);
        }
        drop(data.list[0].clone());
        Ok(())
    }),
    ("from_in(bytes.iter().copied(), heap)", true, |bytes, heap, _| {
        drop(PVec::<u8>::from_in(bytes.iter().copied(), heap));
        Ok(())
    }),
    ("extend of an iterator of unknown length", false, |bytes, heap, _| {
        let mut value = PVec::<u8>::new_in(heap);
        value.extend(bytes.iter().copied().filter(|byte| black_box(*byte) < 255));
        drop(value);
        Ok(())
    }),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool = environment.pool(Medium::Memory, "bytes", OBJECT + (64 << 20))?;
    pool.create_with("heap", &CreateOptions::new(OBJECT).sparse(true))?;
    let mut heap = Heap::format(pool.attach("heap")?)?;
    let bar = progress(VALUES.len() + KEYS.len(), "bytes");
    let (data, place) = heap.root_and_heap::<Data<'_>>("data")?;
    let rounds = if environment.quick { 11 } else { 101 };
    store(data, place, rounds, &bar, section)?;
    look(data, rounds, &bar, section);
    bar.finish_and_clear();
    section.notes.push(
        "All take turns within a round, so that what else the machine does meets all of them. No psync while measuring. An \
         iterator of unknown length has its elements one by one, and its vector grows as they come."
            .into(),
    );
    drop(heap);
    discard(pool);
    Ok(())
}

fn nanoseconds(repeat: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..repeat {
        work()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / repeat as f64)
}

fn cell(samples: &Samples) -> Cell {
    samples.spread().map_or(Cell::Empty, Spread::into)
}

fn store<'h>(
    data: &mut Data<'h>,
    place: HeapRef<'h>,
    rounds: usize,
    bar: &ProgressBar,
    section: &mut Section,
) -> Result<()> {
    let mut table = Table::new(
        "A value of bytes: nanoseconds to store it and to drop it",
        &[
            ("bytes", Unit::Bytes),
            ("by", Unit::Text),
            ("time", Unit::Nanoseconds),
            ("to the floor", Unit::Ratio),
        ],
    );
    for len in VALUES {
        let bytes: Vec<u8> = (0..len).map(|index| (index * 7 % 251) as u8).collect();
        let repeat = ((64 << 10) / len).max(1);
        data.list.clear();
        let mut samples: [Samples; WAYS.len()] = Default::default();
        for round in 0..=rounds {
            for ((_, _, way), samples) in WAYS.iter().zip(&mut samples) {
                let took = nanoseconds(repeat, || way(black_box(&bytes), place, data))?;
                if round > 0 {
                    samples.push(took);
                }
            }
        }
        let floor = samples[0].median();
        for ((name, counted, _), samples) in WAYS.iter().zip(&samples) {
            let ratio = samples.median() / floor;
            table.row(vec![(len as f64).into(), (*name).into(), cell(samples), ratio.into()]);
            if *counted {
                let what = format!("{len} bytes, {name}: to the floor");
                section.goals.push(Goal::at_most(what, Unit::Ratio, 2.0, ratio));
            }
        }
        bar.inc(1);
    }
    section.tables.push(table);
    Ok(())
}

fn look(data: &mut Data<'_>, rounds: usize, bar: &ProgressBar, section: &mut Section) {
    let mut table = Table::new(
        format!("{COUNT} keys of bytes: nanoseconds to look one up"),
        &[
            ("bytes", Unit::Bytes),
            ("PString", Unit::Nanoseconds),
            ("PVec<u8>", Unit::Nanoseconds),
            ("to PString", Unit::Ratio),
        ],
    );
    for len in KEYS {
        let keys: Vec<String> = (0..COUNT).map(|number| format!("{number:0len$}")).collect();
        data.texts.clear();
        data.names.clear();
        for key in &keys {
            data.texts.insert(key, 1);
            data.names.insert(PVec::from_in(key.bytes(), data.names.heap()), 1);
        }
        let mut samples: [Samples; 2] = Default::default();
        for _ in 0..rounds {
            let mut timed = |at: usize, look: &dyn Fn(&String) -> Option<u64>| {
                let start = Instant::now();
                assert_eq!(keys.iter().filter_map(look).sum::<u64>(), COUNT as u64);
                samples[at].push(start.elapsed().as_nanos() as f64 / COUNT as f64);
            };
            timed(0, &|key| data.texts.get(key.as_str()).copied());
            timed(1, &|key| data.names.get(key.as_bytes()).copied());
        }
        let ratio = samples[1].median() / samples[0].median();
        table.row(vec![(len as f64).into(), cell(&samples[0]), cell(&samples[1]), ratio.into()]);
        let what = format!("keys of {len} bytes: to text");
        section.goals.push(Goal::at_most(what, Unit::Ratio, 1.2, ratio));
        bar.inc(1);
    }
    section.tables.push(table);
}
