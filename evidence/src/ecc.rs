//! The error-correcting code of words: words and their check words are damaged, and each repair is held against what is promised.
//!
//! Up to 7 wrong bits of 128 are repaired, but for the halves of the codewords of 14 ones, which are refused. The codewords are found
//! by their check words alone. The same damages are made in the files of pools, for transactions to meet.

mod pools;

use anyhow::{Result, bail};
use clap::Args;
use indelible_record::{Mode, Record, add};
use indelible_stm::ecc::{Beyond, check_word, repair};
use indelible_testing::codewords;
use std::collections::BTreeMap;
use std::thread;
use std::time::Instant;

/// Codewords of 14 ones; there are none of fewer.
const CODEWORDS: usize = 335;
/// Halves of one codeword: 7 of its 14 ones.
const HALVES: usize = 3432;

#[derive(Args)]
pub(crate) struct Ecc {
    /// Each damage of up to 4 bits, each half of a codeword, 1,000,000,000 random damages of up to 7 bits, and many damaged pools
    #[arg(long)]
    long: bool,
    /// Random damages [default: 100,000, or 1,000,000,000 with --long]
    #[arg(long, value_name = "N")]
    samples: Option<u64>,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
}

/// The outcome of the damages that one thread made.
struct Judge<'a> {
    codewords: &'a [u128],
    random: fastrand::Rng,
    counts: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

impl Judge<'_> {
    /// Damages a random word by these bits.
    fn damage(&mut self, kind: &str, bits: u128) {
        let word = self.random.u64(..);
        let check = check_word(word);
        let flips = bits.count_ones();
        let result = repair(word ^ (bits >> 64) as u64, check ^ bits as u64);
        let right = match result {
            Ok(found) => (found.word, found.check, found.flips) == (word, check, flips),
            Err(_) => false,
        };
        let refused = result == Err(Beyond::Ambiguous);
        let two = flips == 7 && self.codewords.iter().any(|codeword| codeword & bits == bits);
        if right != two && (right || refused) {
            let outcome = if right { "repaired" } else { "refused" };
            add(&mut self.counts, &format!("{kind}: {outcome}"), 1);
        } else {
            add(&mut self.counts, "violations", 1);
            self.wrong.push(format!("{word:#018x} damaged by {bits:#034x}: {result:?}"));
        }
    }

    /// Each damage of `most` bits or fewer, one at least, whose lowest bit is at `first` or above.
    fn each(&mut self, bits: u128, first: u32, most: u32) {
        for bit in first..128 {
            let bits = bits | 1 << bit;
            self.damage(KINDS[bits.count_ones() as usize], bits);
            if bits.count_ones() < most {
                self.each(bits, bit + 1, most);
            }
        }
    }

    fn sample(&mut self) {
        let (mut bits, count) = (0_u128, self.random.u32(1..=7));
        while bits.count_ones() < count {
            bits |= 1 << self.random.u32(..128);
        }
        self.damage("random", bits);
    }

    /// Halves of a codeword; each `stride`th of them.
    fn halves(&mut self, codeword: u128, stride: usize) {
        let ones: Vec<u32> = (0..128).filter(|bit| codeword >> bit & 1 == 1).collect();
        let choices = (0_u32..1 << ones.len()).filter(|choice| choice.count_ones() == 7);
        for choice in choices.step_by(stride) {
            let chosen = ones.iter().enumerate().filter(|(number, _)| choice >> number & 1 == 1);
            self.damage("halves of codewords", chosen.map(|(_, bit)| 1_u128 << bit).sum());
        }
    }
}

const KINDS: [&str; 5] = ["", "each of 1 bit", "each of 2 bits", "each of 3 bits", "each of 4 bits"];

impl Ecc {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("ecc: seed {seed}");
        let (mode, most, stride, samples, rounds) = match self.long {
            true => (Mode::Long, 4, 1, 1_000_000_000, 1000),
            false => (Mode::Short, 2, HALVES / 13, 100_000, 20),
        };
        let samples = self.samples.unwrap_or(samples);
        let command = format!("pmo-evidence ecc{}", if self.long { " --long" } else { "" });
        let mut record = Record::new("ecc", mode, command, seed);
        let begin = Instant::now();
        let codewords = codewords(check_word);
        add(&mut record.counts, "codewords of 14 ones", codewords.len() as u64);
        let fewer = codewords.iter().filter(|codeword| codeword.count_ones() != 14).count();
        if codewords.len() != CODEWORDS || fewer > 0 {
            add(&mut record.counts, "violations", 1);
            eprintln!("{} codewords of up to 14 ones, {fewer} of them of fewer", codewords.len());
        }
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let part = |number: usize| {
            let random = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
            let mut judge =
                Judge { codewords: &codewords, random, counts: BTreeMap::new(), wrong: Vec::new() };
            let mine = |at: &usize| at % threads == number;
            // Damages by their lowest bit, codewords one by one, samples in equal parts.
            for bit in (0..128).filter(mine) {
                judge.damage(KINDS[1], 1 << bit);
                judge.each(1 << bit, bit as u32 + 1, most);
            }
            (0..codewords.len()).filter(mine).for_each(|at| judge.halves(codewords[at], stride));
            (0..samples / threads as u64).for_each(|_| judge.sample());
            (judge.counts, judge.wrong)
        };
        let parts: Vec<_> = thread::scope(|scope| {
            let part = &part;
            let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || part(number))).collect();
            running.into_iter().map(|thread| thread.join().expect("a judge does not panic")).collect()
        });
        for (counts, wrong) in parts {
            counts.iter().for_each(|(what, count)| add(&mut record.counts, what, *count));
            wrong.iter().take(20).for_each(|what| eprintln!("{what}"));
        }
        pools::run(rounds, &codewords, seed, &mut record.counts)?;
        record.seconds = begin.elapsed().as_secs_f64();
        record.print();
        record.save()?;
        match record.counts["violations"] {
            0 => Ok(()),
            count => bail!("{count} violations"),
        }
    }
}
