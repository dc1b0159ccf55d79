//! Reads and updates of words of objects beside volatile ones (S1.24), and the cost of begin and
//! end.

use super::loads::{Load, next};
use super::objects::Object;
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stamp::memory::{LINE, Memory, Outcome, Transient, Words, Worker};
use crate::stats::{Samples, Spread};
use indelible::Class;
use std::hint::black_box;
use std::time::Instant;

const LINES: u64 = 4096;
const LOADS: [(&str, Load); 3] = [
    ("64 lines read", Load::Read),
    ("32 lines read, 8 of them changed", Load::Mix),
    ("2 lines changed", Load::Move),
];
const MOST: f64 = 1.2;
const ENTRY: f64 = 40.0;

fn one<W: Worker>(worker: &mut W, load: Load, seed: u64) -> Outcome<u64> {
    let lines = match load {
        Load::Read => 64,
        Load::Mix => 32,
        Load::Change | Load::Move => 2,
    };
    worker.atomically(|tx| {
        let (mut at, mut sum) = (seed, 0_u64);
        for nth in 0..lines {
            let word = at % LINES * LINE;
            let value = tx.get(word)?;
            sum = sum.wrapping_add(value);
            match load {
                Load::Mix if nth % 4 == 3 => tx.set(word, value + 1)?,
                Load::Change | Load::Move => tx.set(word, value + 1)?,
                Load::Mix | Load::Read => {}
            }
            at = at.wrapping_mul(25_214_903_917).wrapping_add(11) >> 3;
        }
        Ok(sum)
    })
}

fn timed<M: Memory>(
    memory: &M,
    rounds: usize,
    work: impl Fn(&mut M::Worker<'_>, u64) -> Outcome<u64>,
) -> Result<f64> {
    let (mut worker, mut random, mut sum) = (memory.worker(), 0x9e37_79b9, 0_u64);
    let start = Instant::now();
    for _ in 0..rounds {
        sum = black_box(sum.wrapping_add(work(&mut worker, next(&mut random))?));
    }
    Ok(start.elapsed().as_nanos() as f64 / rounds as f64)
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 2),
        (_, true) => (20_000, 7),
        _ => (100_000, 31),
    };
    let bar = progress((LOADS.len() + 1) * turns, "access");
    let object = Object::new(environment, Medium::File, Class::OnDemand)?;
    let mut table = Table::new(
        "Words of an object on demand beside volatile ones, one thread",
        &[
            ("transaction", Unit::Text),
            ("Tx", Unit::Nanoseconds),
            ("RTx", Unit::Nanoseconds),
            ("to Tx", Unit::Ratio),
        ],
    );
    let volatile = Transient::new();
    object.fresh(|memory| {
        let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
        let mut row = |name: &str, tx: &Samples, rtx: &Samples| {
            let ratio = rtx.median() / tx.median();
            table.row(vec![name.into(), cell(tx), cell(rtx), ratio.into()]);
            ratio
        };
        for (name, load) in LOADS {
            let (mut tx, mut rtx) = (Samples::default(), Samples::default());
            for _ in 0..turns {
                tx.push(timed(&volatile, rounds, |worker, seed| one(worker, load, seed))?);
                rtx.push(timed(memory, rounds, |worker, seed| one(worker, load, seed))?);
                bar.inc(1);
            }
            let ratio = row(name, &tx, &rtx);
            section.goals.push(Goal::at_most(format!("{name}: RTx to Tx"), Unit::Ratio, MOST, ratio));
        }
        let (mut tx, mut rtx) = (Samples::default(), Samples::default());
        for _ in 0..turns {
            tx.push(timed(&volatile, rounds, |worker, seed| worker.atomically(|_| Ok(seed)))?);
            rtx.push(timed(memory, rounds, |worker, seed| worker.atomically(|_| Ok(seed)))?);
            bar.inc(1);
        }
        row("none: entry and exit", &tx, &rtx);
        let what = "protected access: entry and exit";
        section.goals.push(Goal::at_most(what, Unit::Nanoseconds, ENTRY, rtx.median()));
        Ok(())
    })?;
    bar.finish_and_clear();
    section.tables.push(table);
    Ok(())
}
