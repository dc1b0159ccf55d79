//! Compares the search with a plain one.

mod reference;

use super::search::explain;
use super::{Beyond, check_word, repair};
use indelible_testing::{Seeded, codewords};

/// The plain search needs minutes.
const STRIDE: usize = if cfg!(debug_assertions) { 97 } else { 1 };

fn compare(bits: u128) {
    let (word, check) = ((bits >> 64) as u64, bits as u64);
    let (found, plain) = (explain(word, check), reference::explain(word, check));
    assert_eq!(found.found.min(2), plain.found.min(2), "{bits:#x}");
    assert!(found.found != 1 || found.bits == plain.bits, "{bits:#x}: {:#x}, {:#x}", found.bits, plain.bits);
}

fn each(count: u32, first: u32, bits: u128, then: &mut impl FnMut(u128)) {
    if count == 0 {
        return then(bits);
    }
    for bit in first..128 {
        each(count - 1, bit + 1, bits | 1 << bit, then);
    }
}

fn halves(codeword: u128) -> impl Iterator<Item = u128> {
    let ones: Vec<u128> = (0..128).map(|bit| 1 << bit).filter(|bit| codeword & bit != 0).collect();
    let choices = (0_u32..1 << ones.len()).filter(|choice| choice.count_ones() == 7);
    choices.map(move |choice| {
        let chosen = ones.iter().enumerate().filter(|(nth, _)| choice >> nth & 1 == 1);
        chosen.map(|(_, bit)| bit).sum()
    })
}

#[test]
fn each_damage_of_up_to_three_bits_is_found_as_by_the_plain_search() {
    let mut count = 0;
    for bits in 0..=3 {
        each(bits, 0, 0, &mut |damage| {
            compare(damage);
            assert_eq!(explain((damage >> 64) as u64, damage as u64).bits, damage);
            count += 1;
        });
    }
    assert_eq!(count, 1 + 128 + 8_128 + 341_376);
}

#[test]
fn damage_of_four_bits_is_found_as_by_the_plain_search() {
    let mut count = 0;
    each(4, 0, 0, &mut |damage| {
        if count % STRIDE == 0 {
            compare(damage);
        }
        count += 1;
    });
    assert_eq!(count, 10_668_000);
}

#[test]
fn random_damage_is_found_as_by_the_plain_search() {
    let mut random = Seeded::new(59);
    println!("seed {}", random.seed());
    for count in 5..=12 {
        for _ in 0..(200_000 / STRIDE) {
            let mut bits = 0_u128;
            while bits.count_ones() < count {
                bits |= 1 << random.u32(..128);
            }
            compare(bits);
            compare(in_few_columns(&mut random, count));
        }
    }
}

/// Bits that mostly cancel out in their columns: they need searches of several pairs.
fn in_few_columns(random: &mut fastrand::Rng, count: u32) -> u128 {
    let mut bits = 0_u128;
    while bits.count_ones() < count {
        let column = random.u32(..32);
        let (one, other) = (random.u32(..4), random.u32(..4));
        bits |= 1 << (column + 32 * one);
        if bits.count_ones() < count {
            bits |= 1 << (column + 32 * other);
        }
    }
    bits
}

#[test]
fn each_half_of_a_codeword_is_refused_as_by_the_plain_search() {
    let mut count = 0;
    for codeword in codewords(check_word) {
        for half in halves(codeword) {
            assert_eq!(repair((half >> 64) as u64, half as u64), Err(Beyond::Ambiguous), "{half:#x}");
            if count % STRIDE == 0 {
                compare(half);
            }
            count += 1;
        }
    }
    assert_eq!(count, 1_149_720);
}
