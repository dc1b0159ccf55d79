//! libpmo-tm beside libitm: one C program with `__transaction_atomic` on both libraries.

use super::libitm::Libitm;
use super::{LOADS, THREADS, judged};
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};

const ARCHIVE: &str = "libpmo_tm.a";
const MISSING: &str = "libpmo-tm: not measured. It is linked from libpmo_tm.a beside pmo-bench: cargo build --release -p indelible-tm";
const MOST: f64 = 1.0;

pub fn run(environment: &Environment, libitm: Option<&Libitm>, section: &mut Section) -> Result<()> {
    let Some(libitm) = libitm else { return Ok(()) };
    let archive = std::env::current_exe()?.with_file_name(ARCHIVE);
    let folder = environment.dir(Medium::File);
    let own = match archive.exists() {
        true => Libitm::linked(folder, "pmo-tm", Some(&archive))?,
        false => None,
    };
    let Some(own) = own else {
        section.notes.push(MISSING.into());
        return Ok(());
    };
    let (rounds, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (1_000, 2),
        (_, true) => (20_000, 5),
        _ => (100_000, 15),
    };
    let bar = progress(LOADS.len() * THREADS.len() * turns, "libpmo-tm");
    let mut table = Table::new(
        "The same program of C on two run-time libraries: a transaction of a thread",
        &[
            ("load", Unit::Text),
            ("threads", Unit::Count),
            ("libpmo-tm", Unit::Nanoseconds),
            ("libitm", Unit::Nanoseconds),
            ("to libitm", Unit::Ratio),
        ],
    );
    for (name, load, lines) in LOADS {
        for (threads, _) in THREADS {
            let (mut ours, mut peer) = (Samples::default(), Samples::default());
            for _ in 0..turns {
                for (program, samples) in [(&own, &mut ours), (libitm, &mut peer)] {
                    let figure = program.run(load, threads, rounds, lines)?;
                    samples.push(judged(name, figure, load, threads * rounds, lines)? / rounds as f64);
                }
                bar.inc(1);
            }
            let ratio = ours.median() / peer.median();
            let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
            table.row(vec![name.into(), (threads as u64).into(), cell(&ours), cell(&peer), ratio.into()]);
            let what = format!("libpmo-tm, {name}, {threads} threads: to libitm");
            section.goals.push(Goal::at_most(what, Unit::Ratio, MOST, ratio));
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    Ok(())
}
