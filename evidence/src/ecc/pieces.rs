//! Pieces of a campaign, each with random numbers of its own: damages do not depend on the thread.

use super::judge::{Codewords, Judge, Outcomes, Source};
use anyhow::Result;
use fastrand::Rng;
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const SAMPLES: u64 = 1 << 16;
/// Kinds of random damages, by number of bits: up to 7, nearly all repaired, each its own kind.
const KINDS: [RangeInclusive<u32>; 4] = [5..=5, 6..=6, 7..=7, 8..=13];
const WORDS: [u64; 2] = [0, u64::MAX];

pub(super) struct Plan<'a> {
    pub(super) codewords: &'a [u128],
    pub(super) most: u32,
    pub(super) stride: usize,
    pub(super) samples: u64,
    pub(super) seed: u64,
}

enum Piece {
    Each(u32),
    /// Parts of a codeword: half of its ones has two explanations, more look like the others.
    Parts(u128),
    Random(RangeInclusive<u32>, u64),
}

impl Plan<'_> {
    pub(super) fn run(&self) -> Result<Outcomes> {
        let (pieces, next) = (self.pieces(), AtomicUsize::new(0));
        let codewords = Codewords::new(self.codewords);
        let bar = ProgressBar::new(pieces.iter().map(|piece| self.damages(piece)).sum());
        bar.set_style(ProgressStyle::with_template(
            "{bar:30} {human_pos}/{human_len} damages  {msg}  {per_sec}  {eta}",
        )?);
        let work = || {
            let mut outcomes = Outcomes::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(number) else { return outcomes };
                outcomes.add(self.judge(piece, number, &codewords));
                bar.inc(self.damages(piece));
                if outcomes.violations() > 0 {
                    bar.set_message("VIOLATIONS");
                }
            }
        };
        let mut all = Outcomes::default();
        thread::scope(|scope| {
            let threads = thread::available_parallelism().map_or(1, usize::from);
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().for_each(|thread| all.add(thread.join().expect("a judge does not panic")));
        });
        bar.finish_and_clear();
        println!("ecc: {} damages in {:.1} s", bar.position(), bar.elapsed().as_secs_f64());
        Ok(all)
    }

    fn pieces(&self) -> Vec<Piece> {
        let each = (0..128).map(Piece::Each);
        let parts = self.codewords.iter().copied().map(Piece::Parts);
        let random = (0..self.samples).step_by(SAMPLES as usize).flat_map(|done| {
            let count = SAMPLES.min(self.samples - done);
            KINDS.into_iter().map(move |bits| Piece::Random(bits, count))
        });
        each.chain(parts).chain(random).collect()
    }

    fn damages(&self, piece: &Piece) -> u64 {
        match piece {
            Piece::Each(lowest) => {
                let of = |bits: u32| choose(127 - u64::from(*lowest), u64::from(bits) - 1);
                (1..=self.most).map(of).sum::<u64>() * (1 + WORDS.len() as u64)
            }
            Piece::Parts(codeword) => {
                let ones = u64::from(codeword.count_ones());
                let parts: u64 = (7..ones).map(|some| choose(ones, some)).sum();
                parts.div_ceil(self.stride as u64)
            }
            Piece::Random(_, count) => *count,
        }
    }

    fn judge(&self, piece: &Piece, number: usize, codewords: &Codewords) -> Outcomes {
        let stream = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let random = Rng::with_seed(self.seed ^ stream);
        let mut judge = Judge { codewords, random, outcomes: Outcomes::default() };
        match piece {
            Piece::Each(lowest) => each(&mut judge, 1 << lowest, *lowest, self.most),
            Piece::Parts(codeword) => parts(&mut judge, *codeword, self.stride),
            Piece::Random(bits, count) => (0..*count).for_each(|_| sample(&mut judge, bits)),
        }
        judge.outcomes
    }
}

fn each(judge: &mut Judge<'_>, bits: u128, highest: u32, most: u32) {
    judge.damage(Source::Each, bits);
    WORDS.into_iter().for_each(|word| judge.damage_word(Source::Each, word, bits));
    if bits.count_ones() < most {
        (highest + 1..128).for_each(|bit| each(judge, bits | 1 << bit, bit, most));
    }
}

fn parts(judge: &mut Judge<'_>, codeword: u128, stride: usize) {
    let ones: Vec<u32> = (0..128).filter(|bit| codeword >> bit & 1 == 1).collect();
    let choices = (0_u32..(1 << ones.len()) - 1).filter(|choice| choice.count_ones() >= 7);
    for choice in choices.step_by(stride) {
        let chosen = ones.iter().enumerate().filter(|(number, _)| choice >> number & 1 == 1);
        judge.damage(Source::Parts, chosen.map(|(_, bit)| 1_u128 << bit).sum());
    }
}

fn sample(judge: &mut Judge<'_>, bits: &RangeInclusive<u32>) {
    let (mut damage, count) = (0_u128, judge.random.u32(bits.clone()));
    while damage.count_ones() < count {
        damage |= 1 << judge.random.u32(..128);
    }
    judge.damage(Source::Random, damage);
}

fn choose(of: u64, some: u64) -> u64 {
    (0..some).fold(1, |ways, done| if done < of { ways * (of - done) / (done + 1) } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damage_is_made_and_counted() {
        let plan = Plan { codewords: &[0x3fff], most: 2, stride: 10, samples: 70_000, seed: 1 };
        let pieces = plan.pieces();
        let total: u64 = pieces.iter().map(|piece| plan.damages(piece)).sum();
        assert_eq!(total, 3 * (128 + 8_128) + 991 + 4 * 70_000);
        assert_eq!(pieces.len(), 128 + 1 + 2 * KINDS.len());
        let codewords = Codewords::new(&[]);
        let mut all = std::collections::BTreeMap::new();
        plan.judge(&pieces[0], 0, &codewords).count(&mut all);
        assert_eq!(all["each of 1 bit: repaired"], 3);
        assert_eq!(all["each of 2 bits: repaired"], 3 * 127);
        assert_eq!(all["violations"], 0);
    }
}
