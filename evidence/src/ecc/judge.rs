use fastrand::Rng;
use indelible_record::add;
use indelible_stm::ecc::{Beyond, MOST_FLIPS, check_word, is_whole, repair};
use std::collections::BTreeMap;

const DISTANCE: u32 = 14;
const TOLD: usize = 20;

#[derive(Clone, Copy)]
pub(super) enum Source {
    Each,
    Parts,
    Random,
}

#[derive(Clone, Copy)]
enum Outcome {
    Repaired,
    Refused,
    Lost,
    Mistaken,
}

const OUTCOMES: [&str; 4] =
    ["repaired", "refused, with two explanations", "refused, with none", "repaired to another word"];

#[derive(Default)]
pub(super) struct Outcomes {
    counts: [[[u64; OUTCOMES.len()]; DISTANCE as usize]; 3],
    violations: u64,
    wrong: Vec<String>,
}

impl Outcomes {
    pub(super) fn add(&mut self, other: Outcomes) {
        let counts = self.counts.as_flattened_mut().as_flattened_mut();
        let others = other.counts.as_flattened().as_flattened();
        counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
        self.violations += other.violations;
        self.wrong.extend(other.wrong);
    }

    pub(super) fn violations(&self) -> u64 {
        self.violations
    }

    pub(super) fn count(&self, counts: &mut BTreeMap<String, u64>) {
        for (source, name) in ["each of", "parts of codewords,", "random,"].iter().enumerate() {
            for (bits, outcomes) in self.counts[source].iter().enumerate() {
                for (outcome, count) in OUTCOMES.iter().zip(outcomes).filter(|(_, count)| **count > 0) {
                    let plural = if bits == 1 { "" } else { "s" };
                    add(counts, &format!("{name} {bits} bit{plural}: {outcome}"), *count);
                }
            }
        }
        add(counts, "violations", self.violations);
        self.wrong.iter().take(TOLD).for_each(|what| eprintln!("{what}"));
    }
}

pub(super) struct Codewords(Vec<Vec<u128>>);

impl Codewords {
    pub(super) fn new(all: &[u128]) -> Codewords {
        let with = |bit: u32| all.iter().copied().filter(|codeword| codeword >> bit & 1 == 1).collect();
        Codewords((0..128).map(with).collect())
    }

    fn contain(&self, bits: u128) -> bool {
        self.0[bits.trailing_zeros() as usize].iter().any(|codeword| codeword & bits == bits)
    }
}

pub(super) struct Judge<'a> {
    pub(super) codewords: &'a Codewords,
    pub(super) random: Rng,
    pub(super) outcomes: Outcomes,
}

impl Judge<'_> {
    pub(super) fn damage(&mut self, source: Source, bits: u128) {
        let word = self.random.u64(..);
        self.damage_word(source, word, bits);
    }

    pub(super) fn damage_word(&mut self, source: Source, word: u64, bits: u128) {
        match self.outcome(word, bits) {
            Ok(outcome) => {
                self.outcomes.counts[source as usize][bits.count_ones() as usize][outcome as usize] += 1;
            }
            Err(wrong) => {
                self.outcomes.violations += 1;
                if self.outcomes.wrong.len() < TOLD {
                    self.outcomes.wrong.push(format!("{word:#018x} damaged by {bits:#034x}: {wrong}"));
                }
            }
        }
    }

    /// The outcome, if promised. Eight bits and more may be taken for other damage, never for none.
    fn outcome(&self, word: u64, bits: u128) -> Result<Outcome, String> {
        let (check, flips) = (check_word(word), bits.count_ones());
        let damaged = (word ^ (bits >> 64) as u64, check ^ bits as u64);
        if is_whole(damaged.0, damaged.1) {
            return Err("taken for a whole word".to_owned());
        }
        let result = repair(damaged.0, damaged.1);
        let is_half = || flips == MOST_FLIPS && self.codewords.contain(bits);
        match result {
            Ok(found) if (found.word, found.check, found.flips) == (word, check, flips) => {
                (flips <= MOST_FLIPS && !is_half()).then_some(Outcome::Repaired)
            }
            Ok(found) => {
                let apart = (found.word ^ damaged.0).count_ones() + (found.check ^ damaged.1).count_ones();
                let plausible = is_whole(found.word, found.check)
                    && apart == found.flips
                    && apart <= MOST_FLIPS
                    && apart + flips >= DISTANCE;
                (flips > MOST_FLIPS && plausible).then_some(Outcome::Mistaken)
            }
            Err(Beyond::Ambiguous) => (flips > MOST_FLIPS || is_half()).then_some(Outcome::Refused),
            Err(Beyond::TooManyFlips) => (flips > MOST_FLIPS).then_some(Outcome::Lost),
        }
        .ok_or_else(|| format!("{result:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(bits: u128) -> Result<&'static str, String> {
        let codewords = Codewords::new(&[0x3fff]);
        let judge = Judge { codewords: &codewords, random: Rng::with_seed(1), outcomes: Outcomes::default() };
        judge.outcome(7, bits).map(|outcome| OUTCOMES[outcome as usize])
    }

    #[test]
    fn repairs_are_judged_by_size_and_codewords() {
        assert_eq!(judged(1 << 100 | 3), Ok("repaired"));
        assert_eq!(judged(0x7f << 20), Ok("repaired"));
        assert!(judged(0x7f).unwrap_err().contains("flips: 7"));
        assert_eq!(judged(0xfff << 20), Ok("refused, with none"));
    }

    #[test]
    fn codewords_are_found_by_their_halves() {
        let codewords = Codewords::new(&[0x3fff, 0x7fff << 60]);
        assert!(codewords.contain(0x7f) && codewords.contain(0x7f << 62));
        assert!(!codewords.contain(1 << 14) && !codewords.contain(1 << 62 | 1));
    }
}
