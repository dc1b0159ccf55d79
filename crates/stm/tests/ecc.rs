//! Words that detect damage. `pmo-evidence ecc` does more of the same.

use crate::support::Rule;
use indelible_stm::ecc::{Beyond, Repaired, check_word, is_whole, repair};
use indelible_testing::{Seeded, codewords};
use std::sync::OnceLock;

/// The codewords of 14 ones. None but zero has fewer.
fn of_fourteen() -> &'static [u128] {
    static FOUND: OnceLock<Vec<u128>> = OnceLock::new();
    FOUND.get_or_init(|| codewords(check_word))
}

fn repaired(word: u64, check: u64, rule: Rule) -> Result<Repaired, Beyond> {
    #[cfg(feature = "__mutants")]
    return indelible_stm::ecc::repair_broken(word, check, rule);
    #[cfg(not(feature = "__mutants"))]
    {
        assert!(rule.is_none());
        repair(word, check)
    }
}

fn judge(word: u64, bits: u128, rule: Rule) -> Result<(), String> {
    let whole = (word, check_word(word));
    let result = repaired(whole.0 ^ (bits >> 64) as u64, whole.1 ^ bits as u64, rule);
    let flips = bits.count_ones();
    let ambiguous = flips == 7 && of_fourteen().iter().any(|codeword| codeword & bits == bits);
    match result {
        Err(Beyond::Ambiguous) if ambiguous => Ok(()),
        Ok(found) if !ambiguous && (found.word, found.check, found.flips) == (whole.0, whole.1, flips) => {
            Ok(())
        }
        other => Err(format!("{word:#x} damaged by {bits:#x}: {other:?}")),
    }
}

fn some_bits(random: &mut fastrand::Rng, count: u32) -> u128 {
    let mut bits = 0_u128;
    while bits.count_ones() < count {
        bits |= 1 << random.u32(..128);
    }
    bits
}

pub fn ambiguous_words(rule: Rule) -> Result<(), String> {
    let mut random = fastrand::Rng::with_seed(14);
    of_fourteen().iter().try_for_each(|codeword| {
        (0..3).try_for_each(|_| {
            let mut half = *codeword;
            while half.count_ones() > 7 {
                half &= !(1 << random.u32(..128));
            }
            judge(random.u64(..), half, rule)
        })
    })
}

/// Up to 7 bits anywhere, and 6 or 7 bits in and beside codewords.
pub fn random_damage(rule: Rule) -> Result<(), String> {
    let mut random = Seeded::new(335);
    for flips in 0..=7 {
        for _ in 0..400 {
            judge(random.u64(..), some_bits(&mut random, flips), rule)?;
        }
    }
    for codeword in of_fourteen() {
        let mut bits = *codeword;
        while bits.count_ones() > 6 {
            bits &= !(1 << random.u32(..128));
        }
        judge(random.u64(..), bits, rule)?;
        judge(random.u64(..), bits | *codeword & codeword.wrapping_neg(), rule)?;
        let mut other = bits | 1 << random.u32(..128);
        while other.count_ones() < 7 {
            other |= 1 << random.u32(..128);
        }
        judge(random.u64(..), other, rule)?;
    }
    Ok(())
}

#[test]
fn there_are_335_damages_of_14_bits_that_nobody_notices_and_none_of_fewer() {
    assert_eq!(of_fourteen().len(), 335);
    assert!(of_fourteen().iter().all(|codeword| codeword.count_ones() == 14));
    let whole = |codeword: &u128| is_whole((codeword >> 64) as u64, *codeword as u64);
    assert!(of_fourteen().iter().all(whole));
    // Halves are distinct: so many damages of 7 bits have two explanations.
    let halves = 14 * 13 * 12 * 11 * 10 * 9 * 8 / 5040;
    let common = |one: &u128, other: &u128| one != other && (one & other).count_ones() >= 7;
    assert!(of_fourteen().iter().all(|one| !of_fourteen().iter().any(|other| common(one, other))));
    assert_eq!(335 * halves, 1_149_720);
}

#[test]
fn damage_of_up_to_three_bits_is_repaired_wherever_it_is() {
    let mut random = Seeded::new(3);
    let mut count = 0;
    for first in 0..128 {
        for second in first..128 {
            for third in second..128 {
                let bits = 1_u128 << first | 1 << second | 1 << third;
                let damaged = random.u64(..);
                assert!(!is_whole(damaged ^ (bits >> 64) as u64, check_word(damaged) ^ bits as u64));
                judge(damaged, bits, None).unwrap();
                count += 1;
            }
        }
    }
    assert_eq!(count, 357_760);
}

#[test]
fn random_damage_of_up_to_seven_bits_is_repaired_or_refused() {
    random_damage(None).unwrap();
}

#[test]
fn words_with_two_explanations_are_refused() {
    ambiguous_words(None).unwrap();
}

#[test]
fn damage_of_eight_bits_may_be_taken_for_another() {
    let codeword = of_fourteen()[0];
    let mut bits = codeword;
    while bits.count_ones() > 8 {
        bits &= bits - 1;
    }
    let wrong = repair((bits >> 64) as u64, bits as u64).unwrap();
    assert_eq!((wrong.flips, u128::from(wrong.word) << 64 | u128::from(wrong.check)), (6, codeword));
    let mut random = Seeded::new(8);
    let lost = (0..200).filter(|_| {
        let bits = some_bits(&mut random, 8);
        repair((bits >> 64) as u64, bits as u64).is_err()
    });
    assert!(lost.count() > 190);
}

#[test]
fn memory_that_was_never_written_is_whole() {
    assert!(is_whole(0, 0) && !is_whole(0, 1) && !is_whole(1, 0));
    assert_eq!(repair(0, 0), Ok(Repaired { word: 0, check: 0, flips: 0 }));
}
