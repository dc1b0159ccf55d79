//! Durable transactions of one word: in memory beside libpmemobj, on a disk beside a durable write
//! (S1.24).

use super::loads::next;
use super::objects::Object;
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::floor::WriteFloor;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::peers::pmem::{MISSING, Pmem};
use crate::stamp::memory::{LINE, Memory, Reliable, Words, Worker};
use crate::stats::{Samples, Spread};
use indelible::Class;
use std::sync::Barrier;
use std::time::Instant;

const LINES: u64 = 4096;
const THREADS: [usize; 2] = [1, 8];
const SECTOR: usize = 512;
/// Relative to libpmemobj and to a durable write; commits of 8 threads relative to each.
const TO_PMEMOBJ: f64 = 0.5;
const TO_WRITE: f64 = 1.2;
const COMMITS: f64 = 4.0;

fn change(memory: &Reliable, threads: usize, rounds: usize) -> Result<f64> {
    let ready = Barrier::new(threads);
    let work = |number: usize| {
        let (mut worker, mut random) = (memory.worker(), 0x9e37_79b9 + number as u64);
        ready.wait();
        let start = Instant::now();
        for _ in 0..rounds {
            let word = next(&mut random) % LINES * LINE;
            worker.atomically(|tx| tx.add(word, 1).map(drop))?;
        }
        Ok((start, Instant::now()))
    };
    let times: crate::stamp::memory::Outcome<Vec<(Instant, Instant)>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let times = times?;
    let (start, end) = (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max());
    Ok(start.zip(end).map_or(0, |(start, end)| (end - start).as_nanos()) as f64)
}

fn judged(memory: &Reliable, transactions: usize) -> Result<()> {
    let sum: u64 = memory.worker().read(0..LINES * LINE)?.iter().sum();
    if sum == transactions as u64 {
        return Ok(());
    }
    Err(format!("durable: {sum} transactions are there, and not {transactions}").into())
}

#[allow(unsafe_code)]
fn pmem(pmem: &Pmem, rounds: usize) -> Result<f64> {
    let mut random = 0x9e37_79b9;
    let start = Instant::now();
    for _ in 0..rounds {
        let word = next(&mut random) % LINES * LINE;
        pmem.transaction(|transaction| {
            // SAFETY: a word of the root object, which has so many lines, added before it is stored
            // to.
            unsafe {
                let at = pmem.root().cast::<u64>().add(word as usize);
                transaction.add(at.cast(), 8)?;
                *at += 1;
            }
            Ok(())
        })?;
    }
    Ok(start.elapsed().as_nanos() as f64 / rounds as f64)
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    in_memory(environment, section)?;
    on_disk(environment, section)
}

fn in_memory(environment: &Environment, section: &mut Section) -> Result<()> {
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 2),
        (_, true) => (20_000, 7),
        _ => (50_000, 31),
    };
    let bar = progress(turns, "durable, in memory");
    let path = environment.path(Medium::Memory, "durable-pmem");
    let peer = Pmem::create(&path, Medium::Memory, 16 << 20, (LINES * LINE * 8) as usize)?;
    let (mut own, mut other) = (Samples::default(), Samples::default());
    Object::new(environment, Medium::Memory, Class::Transactional)?.fresh(|memory| {
        for _ in 0..turns {
            own.push(change(memory, 1, rounds)? / rounds as f64);
            if let Some(peer) = &peer {
                other.push(pmem(peer, rounds)?);
            }
            bar.inc(1);
        }
        judged(memory, turns * rounds)
    })?;
    bar.finish_and_clear();
    drop(peer);
    let _ = std::fs::remove_file(path);
    let mut table = Table::new(
        "A durable transaction that changes one of 4,096 lines, in memory treated as persistent",
        &[
            ("indelible", Unit::Nanoseconds),
            ("libpmemobj", Unit::Nanoseconds),
            ("to libpmemobj", Unit::Ratio),
        ],
    );
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    let ratio = own.median() / other.median();
    table.row(vec![cell(&own), cell(&other), ratio.into()]);
    section.tables.push(table);
    match other.len() {
        0 => section.notes.push(format!("Durable transactions: libpmemobj is not measured. {MISSING}")),
        _ => {
            let what = "a durable transaction of one word, in memory: to libpmemobj";
            section.goals.push(Goal::at_most(what, Unit::Ratio, TO_PMEMOBJ, ratio));
        }
    }
    Ok(())
}

fn on_disk(environment: &Environment, section: &mut Section) -> Result<()> {
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (20, 2),
        (_, true) => (200, 7),
        _ => (1_000, 21),
    };
    let bar = progress(turns, "durable, on a disk");
    let path = environment.path(Medium::File, "durable-floor");
    let mut floor = WriteFloor::new(&path, 4 << 20)?;
    let mut writes = Samples::default();
    let mut times: [Samples; THREADS.len()] = Default::default();
    Object::new(environment, Medium::File, Class::Transactional)?.fresh(|memory| {
        let mut done = 0;
        for _ in 0..turns {
            let start = Instant::now();
            (0..rounds).try_for_each(|_| floor.write(SECTOR))?;
            writes.push(start.elapsed().as_nanos() as f64 / rounds as f64);
            for (threads, times) in THREADS.iter().zip(&mut times) {
                times.push(change(memory, *threads, rounds)? / (threads * rounds) as f64);
                done += threads * rounds;
            }
            bar.inc(1);
        }
        judged(memory, done)
    })?;
    bar.finish_and_clear();
    let _ = std::fs::remove_file(path);
    let mut table = Table::new(
        "A durable transaction that changes one of 4,096 lines, on the SSD",
        &[
            ("threads", Unit::Count),
            ("time of all for each", Unit::Nanoseconds),
            ("a durable write", Unit::Nanoseconds),
            ("commits for each durable write", Unit::Ratio),
        ],
    );
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    for (threads, times) in THREADS.iter().zip(&times) {
        let commits = writes.median() / times.median();
        table.row(vec![(*threads as u64).into(), cell(times), cell(&writes), commits.into()]);
        section.goals.push(match threads {
            1 => {
                let what = "SSD, one thread: a durable transaction to one durable write";
                Goal::at_most(what, Unit::Ratio, TO_WRITE, commits.recip())
            }
            _ => {
                let what = format!("SSD, {threads} threads: commits for each durable write");
                Goal::at_least(what, Unit::Ratio, COMMITS, commits)
            }
        });
    }
    section.tables.push(table);
    section.notes.push(format!(
        "A durable write: {SECTOR} bytes of a file whose blocks were written before, with RWF_DSYNC."
    ));
    Ok(())
}
