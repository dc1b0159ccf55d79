//! The heap beside allocators in DRAM: the cost of a block, and fragmentation after churn.

use crate::Result;
use crate::environment::{Environment, Medium, discard, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::peers::pmem::{MISSING, Pmem};
use crate::stats::{Samples, Spread};
use indelible::{CreateOptions, Heap};
use std::sync::Barrier;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

const SIZE: u64 = 1 << 30;
const CONTESTANTS: [&str; 4] = ["indelible", "mimalloc", "system", "libpmemobj"];
const PMEM_SIZE: usize = 256 << 20;
/// Fewer rounds: each block is durable before the next.
const PMEM_ROUNDS: usize = 100_000;
const PMEM_TURNS: usize = 5;

trait Malloc: Sync {
    fn take(&self, size: usize) -> *mut u8;
    fn give(&self, block: *mut u8);
}

impl Malloc for Heap {
    #[inline]
    fn take(&self, size: usize) -> *mut u8 {
        self.malloc(size).expect("a gigabyte is enough").as_ptr()
    }

    #[inline]
    #[allow(unsafe_code)]
    fn give(&self, block: *mut u8) {
        // SAFETY: each load frees its own blocks once.
        unsafe { self.free(block) }.expect("a live block");
    }
}

struct System;
struct Mimalloc;

#[allow(unsafe_code)]
impl Malloc for System {
    #[inline]
    fn take(&self, size: usize) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe { libc::malloc(size).cast() }
    }

    #[inline]
    fn give(&self, block: *mut u8) {
        // SAFETY: as for Heap.
        unsafe { libc::free(block.cast()) }
    }
}

#[allow(unsafe_code)]
impl Malloc for Mimalloc {
    #[inline]
    fn take(&self, size: usize) -> *mut u8 {
        // SAFETY: as for System.
        unsafe { libmimalloc_sys::mi_malloc(size).cast() }
    }

    #[inline]
    fn give(&self, block: *mut u8) {
        // SAFETY: as for Heap.
        unsafe { libmimalloc_sys::mi_free(block.cast()) }
    }
}

#[allow(unsafe_code)]
impl Malloc for Pmem {
    #[inline]
    fn take(&self, size: usize) -> *mut u8 {
        let block = self.malloc(size);
        assert!(!block.is_null(), "libpmemobj: its pool is full");
        block
    }

    #[inline]
    fn give(&self, block: *mut u8) {
        // SAFETY: as for Heap.
        unsafe { Pmem::give(self, block) }
    }
}

struct Random(u64);

impl Random {
    #[inline]
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }
}

#[inline]
fn touch(block: *mut u8) -> *mut u8 {
    #[allow(unsafe_code)]
    // SAFETY: every block has a byte.
    unsafe {
        block.write_volatile(1);
    }
    block
}

type Load<M> = fn(&M, u64, usize) -> usize;

fn pairs<M: Malloc>(malloc: &M, seed: u64, rounds: usize) -> usize {
    let mut random = Random(seed);
    for _ in 0..rounds {
        malloc.give(touch(malloc.take(16 + random.next() % 64)));
    }
    rounds
}

fn batches<M: Malloc>(malloc: &M, _: u64, rounds: usize) -> usize {
    let mut blocks = Vec::with_capacity(10_000);
    for _ in 0..rounds / 10_000 {
        blocks.extend((0..10_000).map(|_| touch(malloc.take(64))));
        blocks.drain(..).for_each(|block| malloc.give(block));
    }
    rounds
}

fn churn<M: Malloc>(malloc: &M, seed: u64, rounds: usize, most: usize, count: usize) -> usize {
    let mut random = Random(seed);
    let size = |random: &mut Random| 8 + random.next() % most;
    let mut blocks: Vec<*mut u8> = (0..count).map(|_| touch(malloc.take(size(&mut random)))).collect();
    for _ in 0..rounds {
        let at = random.next() % count;
        malloc.give(blocks[at]);
        blocks[at] = touch(malloc.take(size(&mut random)));
    }
    blocks.into_iter().for_each(|block| malloc.give(block));
    rounds
}

fn larson<M: Malloc>(malloc: &M, seed: u64, rounds: usize) -> usize {
    churn(malloc, seed, rounds, 1000, 5_000)
}

fn mixed<M: Malloc>(malloc: &M, seed: u64, rounds: usize) -> usize {
    churn(malloc, seed, rounds, 16_000, 1_000)
}

fn alike<M: Malloc>(malloc: &M, threads: usize, rounds: usize, load: Load<M>) -> f64 {
    let barrier = Barrier::new(threads);
    let work = &|number| {
        barrier.wait();
        let start = Instant::now();
        load(malloc, 0x9e37_79b9 + number as u64, rounds);
        (start, Instant::now())
    };
    // Timed by the threads' clocks, first start to last end: this thread may wake late.
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("loads do not panic")).collect()
    });
    let start = times.iter().map(|time| time.0).min();
    let end = times.iter().map(|time| time.1).max();
    let nanoseconds = start.zip(end).map_or(0, |(start, end)| (end - start).as_nanos());
    nanoseconds as f64 / rounds as f64
}

fn handed<M: Malloc>(malloc: &M, rounds: usize) -> f64 {
    let (sender, receiver) = sync_channel::<Vec<usize>>(16);
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut random = Random(7);
            for _ in 0..rounds / 1000 {
                let block = |_| touch(malloc.take(16 + random.next() % 240)).addr();
                if sender.send((0..1000).map(block).collect()).is_err() {
                    return;
                }
            }
        });
        for blocks in receiver {
            blocks.into_iter().for_each(|block| malloc.give(std::ptr::with_exposed_provenance_mut(block)));
        }
    });
    start.elapsed().as_nanos() as f64 / rounds as f64
}

const LOADS: [&str; 9] = [
    "one block, 1 thread",
    "one block, 2 threads",
    "batches of 10,000, 1 thread",
    "batches of 10,000, 2 threads",
    "replaced at random, 8–1,007 B, 1 thread",
    "replaced at random, 8–1,007 B, 2 threads",
    "replaced at random, 8–16,007 B, 1 thread",
    "replaced at random, 8–16,007 B, 2 threads",
    "handed from thread to thread",
];

fn measure<M: Malloc>(malloc: &M, load: usize, rounds: usize) -> f64 {
    match load {
        0 | 1 => alike(malloc, load + 1, rounds * 4, pairs),
        2 | 3 => alike(malloc, load - 1, rounds * 2, batches),
        4 | 5 => alike(malloc, load - 3, rounds, larson),
        6 | 7 => alike(malloc, load - 5, rounds, mixed),
        _ => handed(malloc, rounds),
    }
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let pool = environment.pool(Medium::Memory, "heap", SIZE + (64 << 20))?;
    pool.create_with("heap", &CreateOptions::new(SIZE).sparse(true))?;
    let heap = Heap::format(pool.attach("heap")?)?;
    let pmem = Pmem::create(&environment.path(Medium::Memory, "heap-pmem"), Medium::Memory, PMEM_SIZE, 64)?;
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (10_000, 2),
        (_, true) => (100_000, 5),
        _ => (1_000_000, 15),
    };
    let bar = progress(LOADS.len() * turns, "heap");
    let mut table = Table::new(
        "A block's life: allocated, one byte stored, freed",
        &[
            ("load", Unit::Text),
            (CONTESTANTS[0], Unit::Nanoseconds),
            (CONTESTANTS[1], Unit::Nanoseconds),
            (CONTESTANTS[2], Unit::Nanoseconds),
            (CONTESTANTS[3], Unit::Nanoseconds),
            ("to mimalloc", Unit::Ratio),
            ("to system", Unit::Ratio),
            ("to libpmemobj", Unit::Ratio),
        ],
    );
    for (number, name) in LOADS.iter().enumerate() {
        let mut samples = [Samples::default(), Samples::default(), Samples::default()];
        for turn in 0..=turns {
            let figures = [
                measure(&heap, number, rounds),
                measure(&Mimalloc, number, rounds),
                measure(&System, number, rounds),
            ];
            if turn > 0 {
                samples.iter_mut().zip(figures).for_each(|(samples, figure)| samples.push(figure));
                bar.inc(1);
            }
        }
        let mut durable = Samples::default();
        if let Some(pmem) = &pmem {
            for turn in 0..=PMEM_TURNS.min(turns) {
                let figure = measure(pmem, number, rounds.min(PMEM_ROUNDS));
                if turn > 0 {
                    durable.push(figure);
                }
            }
        }
        let [own, mimalloc, system] = &samples;
        let (to_mimalloc, to_system) = (own.median() / mimalloc.median(), own.median() / system.median());
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        table.row(vec![
            (*name).into(),
            cell(own),
            cell(mimalloc),
            cell(system),
            cell(&durable),
            to_mimalloc.into(),
            to_system.into(),
            pmem.as_ref().map_or(Cell::Empty, |_| (own.median() / durable.median()).into()),
        ]);
        let what = format!("{name}: to mimalloc");
        section.goals.push(Goal::at_most(what, Unit::Ratio, 1.5, to_mimalloc));
        if pmem.is_some() {
            let what = format!("{name}: to libpmemobj");
            section.goals.push(Goal::at_most(what, Unit::Ratio, 1.0, own.median() / durable.median()));
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    let heap = fragmentation(heap, environment.quick, section)?;
    section.notes.push(
        "No psync while measuring: allocators in DRAM have none. Every block's state is in the object at every \
         moment; freeing checks the pointer."
            .into(),
    );
    section.notes.push(match pmem {
        Some(_) => "libpmemobj: its atomic allocation and freeing, which write back and fence what they change of the \
                    heap each time. There is none that does not."
            .into(),
        None => format!("libpmemobj: not measured. {MISSING}"),
    });
    drop(heap);
    discard(pool);
    Ok(())
}

fn fragmentation(heap: Heap, quick: bool, section: &mut Section) -> Result<Heap> {
    let mut table = Table::new(
        "Fragmentation after churn: 20,000 blocks replaced at random while sizes drift from 100 B to 20 KiB",
        &[
            ("replaced", Unit::Count),
            ("live", Unit::Bytes),
            ("taken", Unit::Bytes),
            ("taken/live", Unit::Ratio),
            ("largest free", Unit::Bytes),
        ],
    );
    let mut random = Random(42);
    let mut blocks: Vec<*mut u8> = (0..20_000).map(|_| heap.take(100)).collect();
    let (steps, each) = if quick { (4, 20_000) } else { (10, 200_000) };
    for step in 1..=steps {
        let scale = 100 + 400 * (step % 5) * (step % 5) * 3;
        for _ in 0..each {
            let at = random.next() % blocks.len();
            heap.give(blocks[at]);
            blocks[at] = heap.take(16 + random.next() % scale);
        }
        let stats = heap.stats()?;
        let taken = stats.bytes - stats.free_bytes;
        table.row(vec![
            ((step * each) as u64).into(),
            stats.block_bytes.into(),
            taken.into(),
            (taken as f64 / stats.block_bytes as f64).into(),
            stats.largest_free.into(),
        ]);
    }
    section.tables.push(table);
    for block in blocks {
        heap.give(block);
    }
    Ok(heap)
}
