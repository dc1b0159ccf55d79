//! The paper's applications (S1.20, S1.21, S1.24): STAMP and a key-value store, in modes NoTx, Tx
//! and RTx.

use super::objects::Object;
use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stamp::memory::{Plain, Transient};
use crate::stamp::{
    Bayes, Genome, Intruder, Kernel, Kmeans, Labyrinth, Ssca2, Store, Vacation, Yada, run as once,
};
use crate::stats::{Samples, Spread};
use indelible::Class;
use indicatif::ProgressBar;

const THREADS: [usize; 3] = [1, 2, 8];
const MEDIAN: f64 = 1.065;

struct Measured<'e> {
    on_demand: Object,
    durable: Object,
    smaller: usize,
    turns: usize,
    threads: &'e [usize],
    bar: ProgressBar,
    table: Table,
    ratios: Vec<Samples>,
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let (smaller, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (16, 1),
        (_, true) => (4, 3),
        _ => (1, 15),
    };
    let threads = environment.some(&THREADS, 2);
    let mut all = Measured {
        on_demand: Object::new(environment, Medium::File, Class::OnDemand)?,
        durable: Object::new(environment, Medium::Memory, Class::Transactional)?,
        smaller,
        turns,
        threads,
        bar: progress(9 * threads.len() * turns, "applications"),
        table: Table::new(
            "Applications, from the first thread's start to the last one's end",
            &[
                ("application", Unit::Text),
                ("threads", Unit::Count),
                ("NoTx", Unit::Nanoseconds),
                ("Tx", Unit::Nanoseconds),
                ("RTx, on demand", Unit::Nanoseconds),
                ("to Tx", Unit::Ratio),
                ("RTx, durable in memory", Unit::Nanoseconds),
                ("to Tx", Unit::Ratio),
            ],
        ),
        ratios: vec![Samples::default(); threads.len()],
    };
    all.application::<Bayes>(32)?;
    all.application::<Genome>(64)?;
    all.application::<Intruder>(64)?;
    all.application::<Kmeans>(64)?;
    all.application::<Labyrinth>(16)?;
    all.application::<Ssca2>(256)?;
    all.application::<Vacation>(64)?;
    all.application::<Yada>(64)?;
    all.application::<Store>(128)?;
    all.bar.finish_and_clear();
    for (threads, ratios) in threads.iter().zip(&all.ratios) {
        let what = format!("applications, {threads} threads: RTx on demand to Tx, median");
        section.goals.push(Goal::at_most(what, Unit::Ratio, MEDIAN, ratios.median()));
    }
    section.tables.push(all.table);
    section.notes.push(
        "Applications: STAMP, written anew from its description, and a store of keys and values as memcached is one, whose results are looked at after each run. \
         NoTx: plain words, one thread. Tx: volatile transactions. RTx: transactions on an object; on demand in a pool on the SSD, epochs included; durable in a pool \
         in memory. Shared data are in words of one array of 8 MiB, blocks are allocated by the program's own allocator, the same in all modes."
            .into(),
    );
    Ok(())
}

impl Measured<'_> {
    fn application<K: Kernel>(&mut self, size: usize) -> Result<()> {
        let kernel = K::new((size / self.smaller).max(1));
        for (nth, threads) in self.threads.iter().enumerate() {
            let [mut plain, mut volatile, mut on_demand, mut durable] =
                std::array::from_fn(|_| Samples::default());
            for _ in 0..self.turns {
                if *threads == 1 {
                    plain.push(once(&kernel, &Plain::new(), 1)?);
                }
                volatile.push(once(&kernel, &Transient::new(), *threads)?);
                on_demand.push(self.on_demand.fresh(|memory| Ok(once(&kernel, memory, *threads)?))?);
                durable.push(self.durable.fresh(|memory| Ok(once(&kernel, memory, *threads)?))?);
                self.bar.inc(1);
            }
            let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
            let to_volatile = |samples: &Samples| samples.median() / volatile.median();
            self.ratios[nth].push(to_volatile(&on_demand));
            self.table.row(vec![
                K::NAME.into(),
                (*threads as u64).into(),
                cell(&plain),
                cell(&volatile),
                cell(&on_demand),
                to_volatile(&on_demand).into(),
                cell(&durable),
                to_volatile(&durable).into(),
            ]);
        }
        Ok(())
    }
}
