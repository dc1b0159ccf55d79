//! Checking and repairing words with check words.

use crate::Result;
use crate::environment::Environment;
use crate::model::{Cell, Goal, Section, Table, Unit};
use crate::stats::{Samples, Spread};
use indelible_stm::ecc::{check_word, is_whole, repair};
use std::hint::black_box;
use std::time::Instant;

const WORDS: usize = 1024;
const LOOK: f64 = 5.0;
const REPAIR: (u32, f64) = (7, 100_000.0);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bits(&mut self, count: u32) -> u128 {
        let mut bits = 0_u128;
        while bits.count_ones() < count {
            bits |= 1 << (self.next() >> 57);
        }
        bits
    }
}

pub fn run(environment: &Environment, section: &mut Section) -> Result<()> {
    let (rounds, repairs) = match (environment.smoke, environment.quick) {
        (true, _) => (10, 1),
        (_, true) => (1_000, 21),
        _ => (10_000, 201),
    };
    let mut table = Table::new(
        "A word and its check word",
        &[("of a word", Unit::Text), ("time", Unit::Nanoseconds), ("to reading both", Unit::Ratio)],
    );
    let mut random = Random(0x9e37_79b9);
    let words: Vec<(u64, u64)> =
        (0..WORDS).map(|_| random.next()).map(|word| (word, check_word(word))).collect();
    let (mut read, mut look) = (Samples::default(), Samples::default());
    for _ in 0..rounds {
        read.push(timed(WORDS, || {
            words.iter().filter(|(word, check)| black_box(*word) != black_box(*check)).count()
        })?);
        look.push(timed(WORDS, || {
            words.iter().filter(|(word, check)| is_whole(black_box(*word), black_box(*check))).count()
        })?);
    }
    let cell = |samples: &Samples| samples.spread().map_or(Cell::Empty, Spread::into);
    table.row(vec!["reading both".into(), cell(&read), Cell::Empty]);
    table.row(vec![
        "looking whether it is whole".into(),
        cell(&look),
        (look.median() / read.median()).into(),
    ]);
    section.goals.push(Goal::at_most(
        "a look whether a word is whole",
        Unit::Nanoseconds,
        LOOK,
        look.median(),
    ));
    for flips in 1..=7 {
        let mut means = Samples::default();
        for _ in 0..repairs {
            means.push(mean_repair(&mut random, flips)?);
        }
        let what = format!("repair of {flips} wrong bits, mean");
        table.row(vec![what.as_str().into(), cell(&means), Cell::Empty]);
        if flips == REPAIR.0 {
            section.goals.push(Goal::at_most(what, Unit::Nanoseconds, REPAIR.1, means.median()));
        }
    }
    section.tables.push(table);
    Ok(())
}

/// Mean nanoseconds of a few repairs, so that disturbances meet few means.
fn mean_repair(random: &mut Random, flips: u32) -> Result<f64> {
    const COUNT: usize = 20;
    let damaged: Vec<(u64, u64, u64)> = (0..COUNT)
        .map(|_| (random.next(), random.bits(flips)))
        .map(|(word, bits)| (word, word ^ (bits >> 64) as u64, check_word(word) ^ bits as u64))
        .collect();
    let is_wrong = |(word, damaged, check): &&(u64, u64, u64)| {
        // One in 82,000 damages of 7 bits is refused.
        repair(black_box(*damaged), *check).is_ok_and(|found| found.word != *word)
    };
    let start = Instant::now();
    let wrong = damaged.iter().filter(is_wrong).count();
    let mean = start.elapsed().as_nanos() as f64 / COUNT as f64;
    if wrong == 0 {
        Ok(mean)
    } else {
        Err(format!("{wrong} words with {flips} wrong bits were repaired to others").into())
    }
}

fn timed(count: usize, work: impl FnOnce() -> usize) -> Result<f64> {
    let start = Instant::now();
    let counted = work();
    let time = start.elapsed().as_nanos() as f64 / count as f64;
    if counted == count { Ok(time) } else { Err(format!("{counted} of {count} words are whole").into()) }
}
