//! Volatile transactions beside GCC's libitm; words with check words.

mod access;
mod applications;
mod blocks;
mod durable;
mod ecc;
mod libitm;
mod lists;
mod loads;
mod objects;
mod on_demand;
mod runtime;
mod words;

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use libitm::{Libitm, METHOD, MISSING};
use loads::{FIRST, Load};

const THREADS: [(usize, f64); 3] = [(1, 0.7), (2, 0.8), (8, 1.0)];
const LOADS: [(&str, Load, usize); 5] = [
    ("1 of 4,096 lines changed", Load::Change, 4096),
    ("2 of 4,096 lines changed", Load::Move, 4096),
    ("64 lines read", Load::Read, 4096),
    ("32 lines read, 8 of them changed", Load::Mix, 4096),
    ("the same, of 32 lines in all", Load::Mix, 32),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let libitm = Libitm::compile(environment.dir(Medium::File))?;
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 2),
        (_, true) => (20_000, 11),
        _ => (100_000, 31),
    };
    let bar = progress(LOADS.len() * THREADS.len() * turns, "transactions");
    let mut table = Table::new(
        "A transaction of a thread, in memory that is volatile",
        &[
            ("load", Unit::Text),
            ("threads", Unit::Count),
            ("indelible", Unit::Nanoseconds),
            ("libitm", Unit::Nanoseconds),
            ("to libitm", Unit::Ratio),
        ],
    );
    for (name, load, lines) in LOADS {
        for (threads, most) in THREADS {
            let (mut own, mut peer) = (Samples::default(), Samples::default());
            for _ in 0..turns {
                own.push(
                    judged(name, loads::run(load, threads, rounds, lines), load, threads * rounds, lines)?
                        / rounds as f64,
                );
                if let Some(libitm) = &libitm {
                    let figure = libitm.run(load, threads, rounds, lines)?;
                    peer.push(judged(name, figure, load, threads * rounds, lines)? / rounds as f64);
                }
                bar.inc(1);
            }
            let ratio = own.median() / peer.median();
            let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
            table.row(vec![name.into(), (threads as u64).into(), cell(&own), cell(&peer), ratio.into()]);
            if libitm.is_some() {
                let what = format!("{name}, {threads} threads: to libitm");
                section.goals.push(Goal::at_most(what, Unit::Ratio, most, ratio));
            }
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    section.notes.push(match &libitm {
        Some(_) => format!(
            "The same program in C, with `__transaction_atomic`, and in Rust; libitm's method is {METHOD}. Its commits also wait until no transaction \
             runs that began before them, so that memory may be taken out of use without transactions; those of indelible do so \
             only if they are asked to (`Stm::quiesce`)."
        ),
        None => format!("libitm: not measured. {MISSING}"),
    });
    runtime::run(environment, libitm.as_ref(), section)?;
    blocks::run(environment, libitm.is_some(), section)?;
    on_demand::run(environment, section)?;
    access::run(environment, section)?;
    lists::run(environment, section)?;
    durable::run(environment, section)?;
    applications::run(environment, section)?;
    ecc::run(environment, section)?;
    words::run(environment, section)
}

fn judged(name: &str, (time, sum): (f64, u64), load: Load, transactions: usize, lines: usize) -> Result<f64> {
    let right = lines as u64 * FIRST + transactions as u64 * load.grows();
    if sum == right {
        Ok(time)
    } else {
        Err(format!("{name}: the words are {sum} in all, and not {right}").into())
    }
}
