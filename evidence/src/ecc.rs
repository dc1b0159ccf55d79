//! The error-correcting code of words: damages words and check words, and judges each repair.
//!
//! Up to 7 wrong bits of 128 are repaired, except halves of codewords of 14 ones; up to 13 are
//! noticed. Files of pools are damaged, too.

mod judge;
mod pieces;
mod pools;

use anyhow::{Result, bail};
use clap::Args;
use indelible_record::{Mode, Record, add};
use indelible_stm::ecc::check_word;
use indelible_testing::codewords;
use pieces::Plan;
use std::time::Instant;

const CODEWORDS: usize = 335;
const MOST_SAMPLES: u64 = 1_000_000_000;

#[derive(Args)]
pub(crate) struct Ecc {
    /// Each damage of up to 4 bits, each part of a codeword, a billion random damages of each of 5,
    /// 6 and 7 bits and a billion of 8 to 13, and many damaged pools
    #[arg(long)]
    long: bool,
    /// Random damages of each of 5, 6 and 7 bits, and of 8 to 13 [default: 100000, or 1000000000
    /// with --long]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST_SAMPLES))]
    samples: Option<u64>,
    /// Seed of the random choices [default: another each time]
    #[arg(long)]
    seed: Option<u64>,
}

impl Ecc {
    pub(crate) fn run(&self) -> Result<()> {
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        println!("ecc: seed {seed}");
        let (mode, most, stride, usual, rounds) = match self.long {
            true => (Mode::Long, 4, 1, MOST_SAMPLES, 1000),
            false => (Mode::Short, 3, 13, 100_000, 20),
        };
        let samples = self.samples.unwrap_or(usual);
        let mut record = Record::new("ecc", mode, self.command(samples, seed), seed);
        let begin = Instant::now();
        let codewords = codewords(check_word);
        add(&mut record.counts, "codewords of 14 ones", codewords.len() as u64);
        let fewer = codewords.iter().filter(|codeword| codeword.count_ones() != 14).count();
        if codewords.len() != CODEWORDS || fewer > 0 {
            add(&mut record.counts, "violations", 1);
            eprintln!("{} codewords of up to 14 ones, {fewer} of them of fewer", codewords.len());
        }
        let outcomes = Plan { codewords: &codewords, most, stride, samples, seed }.run()?;
        outcomes.count(&mut record.counts);
        pools::run(rounds, &codewords, seed, &mut record.counts)?;
        record.seconds = begin.elapsed().as_secs_f64();
        record.print();
        record.save()?;
        match record.counts["violations"] {
            0 => Ok(()),
            count => bail!("{count} violations\nagain: {}", record.command),
        }
    }

    fn command(&self, samples: u64, seed: u64) -> String {
        let long = if self.long { " --long" } else { "" };
        format!("pmo-evidence ecc{long} --samples {samples} --seed {seed}")
    }
}
