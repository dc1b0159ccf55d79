//! Transactions on demand beside volatile ones, epochs included: the price of outliving the
//! process.

use super::loads::{self, Load};
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible::{Class, CreateOptions, Error, Plain, TxCell, TxObject};
use std::sync::Barrier;
use std::time::Instant;

const LINES: usize = 4096;
const THREADS: [usize; 3] = [1, 2, 8];
const MORE: f64 = 60.0;

#[derive(Plain)]
#[repr(C)]
struct Line {
    word: TxCell<u64>,
    rest: [u64; 7],
}

type Lines = [Line; LINES];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    // About ten seconds of a thread, so that epochs come as in long runs.
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 2),
        (_, true) => (300_000, 7),
        _ => (1_000_000, 51),
    };
    let bar = progress(Medium::ALL.len() * THREADS.len() * turns, "on demand");
    let mut table = Table::new(
        "A transaction that changes one of 4,096 lines, on demand, its epochs included",
        &[
            ("pool", Unit::Text),
            ("threads", Unit::Count),
            ("volatile", Unit::Nanoseconds),
            ("on demand", Unit::Nanoseconds),
            ("more", Unit::Nanoseconds),
            ("psyncs", Unit::Count),
        ],
    );
    for medium in Medium::ALL {
        let pool = environment.pool(medium, "on-demand", 64 << 20)?;
        pool.create_with("lines", &CreateOptions::new(size_of::<Lines>() as u64).class(Class::OnDemand))?;
        let object = pool.attach_transactional::<Lines>("lines")?;
        let mut done = 0;
        for threads in THREADS {
            let before = pool.stat("lines")?.psyncs;
            let (mut volatile, mut kept) = (Samples::default(), Samples::default());
            for _ in 0..turns {
                let time = loads::run(Load::Change, threads, rounds, LINES);
                volatile.push(
                    super::judged("volatile", time, Load::Change, threads * rounds, LINES)? / rounds as f64,
                );
                kept.push(change(&object, threads, rounds)? / rounds as f64);
                done += (threads * rounds) as u64;
                bar.inc(1);
            }
            let psyncs = pool.stat("lines")?.psyncs - before;
            let more = kept.median() - volatile.median();
            let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
            table.row(vec![
                medium.word().into(),
                (threads as u64).into(),
                cell(&volatile),
                cell(&kept),
                more.into(),
                psyncs.into(),
            ]);
            if threads == 1 {
                let what = format!("on demand, {}: more than volatile", medium.word());
                section.goals.push(Goal::at_most(what, Unit::Nanoseconds, MORE, more));
            }
        }
        object.psync()?;
        let sum = object.transaction(|tx| {
            let mut lines = object.iter();
            lines.try_fold(0, |sum, line| Ok::<_, Error>(sum + tx.read(&line.word)?))
        })?;
        if sum != done {
            return Err(format!("on demand: {sum} transactions are there, and not {done}").into());
        }
        object.detach()?;
    }
    bar.finish_and_clear();
    section.tables.push(table);
    Ok(())
}

fn change(object: &TxObject<Lines>, threads: usize, rounds: usize) -> Result<f64> {
    let ready = Barrier::new(threads);
    let work = |number: usize| -> indelible::Result<(Instant, Instant)> {
        let mut random = 0x9e37_79b9 + number as u64;
        ready.wait();
        let start = Instant::now();
        for _ in 0..rounds {
            let line = &object[loads::next(&mut random) as usize & (LINES - 1)];
            object.transaction(|tx| tx.update(&line.word, |value| value + 1))?;
        }
        Ok((start, Instant::now()))
    };
    let times: indelible::Result<Vec<(Instant, Instant)>> = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    let times = times?;
    let (start, end) = (times.iter().map(|time| time.0).min(), times.iter().map(|time| time.1).max());
    Ok(start.zip(end).map_or(0, |(start, end)| (end - start).as_nanos()) as f64)
}
