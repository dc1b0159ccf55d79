//! Transactions on objects with check words beside plain ones: the price of reliability (S1.24).

use crate::Result;
use crate::environment::{Environment, Medium, progress};
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible::collections::transactional::TxList;
use indelible::{Class, CreateOptions, Error, Pool, TxCell, TxHeap, TxObject};
use std::hint::black_box;
use std::time::Instant;

/// 32 KiB, 64 with check words.
const WORDS: usize = 4096;
const READ: usize = 512;
const VALUES: usize = 500;
type Payload = [u64; 16];
const MOST: f64 = 1.2;

type Table4K = [TxCell<u64>; WORDS];

struct Pair {
    object: TxObject<Table4K>,
    heap: TxHeap,
}

impl Pair {
    fn new(pool: &Pool, ecc: bool) -> Result<Pair> {
        let how = |size| CreateOptions::new(size).class(Class::Transactional).ecc(ecc);
        let (words, list) = if ecc { ("checked words", "checked list") } else { ("words", "list") };
        pool.create_with(words, &how(size_of::<Table4K>() as u64))?;
        pool.create_with(list, &how(1 << 20))?;
        let object = pool.attach_transactional::<Table4K>(words)?;
        object.transaction(|tx| (0..WORDS).try_for_each(|nth| tx.write(&object.root()[nth], nth as u64)))?;
        let heap = pool.transactional_heap(list, 0)?;
        let values = heap.root_or_default::<TxList<Payload>>("values")?;
        heap.transaction(|tx| (0..VALUES).try_for_each(|nth| values.push_back(tx, [nth as u64; 16])))?;
        Ok(Pair { object, heap })
    }

    fn run(&self, load: Load, rounds: usize) -> Result<f64> {
        let words = self.object.root();
        let values = self.heap.root::<TxList<Payload>>("values")?;
        let start = Instant::now();
        for round in 0..rounds {
            match load {
                Load::Read => {
                    let first = round * READ % WORDS;
                    let sum = self.object.transaction(|tx| {
                        (first..first + READ)
                            .try_fold(0, |sum, nth| Ok::<_, Error>(sum + tx.read(&words[nth])?))
                    })?;
                    black_box(sum);
                }
                Load::Change => self.object.transaction(|tx| {
                    let cell = &words[round * 8 % WORDS];
                    tx.update(cell, |value| value.wrapping_add(1))
                })?,
                Load::Iterate => {
                    let all = self.heap.transaction(|tx| values.to_vec(tx))?;
                    if all.len() != VALUES {
                        return Err(format!("the list has {} values, and not {VALUES}", all.len()).into());
                    }
                }
                Load::PushPop => self.heap.transaction(|tx| {
                    values.push_back(tx, [round as u64; 16])?;
                    values.pop_front(tx).map(drop)
                })?,
            }
        }
        Ok(start.elapsed().as_nanos() as f64 / rounds as f64)
    }
}

#[derive(Clone, Copy)]
enum Load {
    Read,
    Change,
    Iterate,
    PushPop,
}

const LOADS: [(&str, Load, usize); 4] = [
    ("512 words read", Load::Read, 1000),
    ("one word changed", Load::Change, 200),
    ("a list of 500 values of 128 bytes read", Load::Iterate, 100),
    ("a value of 128 bytes pushed, one popped", Load::PushPop, 200),
];

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let (part, turns) = match (environment.smoke, environment.quick) {
        (true, _) => (50, 2),
        (_, true) => (1, 7),
        _ => (1, 51),
    };
    let bar = progress(Medium::ALL.len() * LOADS.len() * turns, "check words");
    let mut table = Table::new(
        "A transaction on an object with check words",
        &[
            ("pool", Unit::Text),
            ("load", Unit::Text),
            ("without", Unit::Nanoseconds),
            ("with check words", Unit::Nanoseconds),
            ("to without", Unit::Ratio),
        ],
    );
    for medium in Medium::ALL {
        let pool = environment.pool(medium, "ecc", 64 << 20)?;
        let (plain, checked) = (Pair::new(&pool, false)?, Pair::new(&pool, true)?);
        for (name, load, rounds) in LOADS {
            let (mut without, mut with) = (Samples::default(), Samples::default());
            for _ in 0..turns {
                without.push(plain.run(load, rounds.div_ceil(part))?);
                with.push(checked.run(load, rounds.div_ceil(part))?);
                bar.inc(1);
            }
            let ratio = with.median() / without.median();
            let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
            table.row(vec![medium.word().into(), name.into(), cell(&without), cell(&with), ratio.into()]);
            let what = format!("{name}, {}: with check words to without", medium.word());
            section.goals.push(Goal::at_most(what, Unit::Ratio, MOST, ratio));
        }
        let repairs = checked.object.repairs();
        if repairs != indelible::Repairs::default() {
            return Err(format!("words were damaged: {repairs:?}").into());
        }
    }
    bar.finish_and_clear();
    section.tables.push(table);
    section.notes.push(
        "Objects without check words and such with them are in one process, and so in one transactional memory, which looks in its list of the latter at each word of the former."
            .to_owned(),
    );
    Ok(())
}
