use super::Crew;
use crate::pattern::Random;
use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub trait Number: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Send + Sync {}
impl Number for f64 {}
impl Number for i32 {}

/// Bytes as numbers. Arrays begin on a page or consist of words.
pub fn numbers<T: Number>(bytes: &mut [u8]) -> &mut [T] {
    <[T]>::mut_from_bytes(bytes).expect("arrays are aligned and hold whole numbers")
}

pub fn each_row<T: Number>(
    rows: &mut [T],
    width: usize,
    first: usize,
    crew: &Crew,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let share = (rows.len() / width).div_ceil(crew.current_num_threads() * 4).max(1);
    let piece = |number: usize, rows: &mut [T]| {
        for (row, numbers) in rows.chunks_exact_mut(width).enumerate() {
            work(first + number * share + row, numbers);
        }
    };
    crew.install(|| {
        rows.par_chunks_mut(share * width).enumerate().for_each(|(number, rows)| piece(number, rows));
    });
}

/// A diagonally dominant matrix: elimination needs no pivots.
pub fn dominant(rows: &mut [f64], width: usize) {
    let mut random = Random::new(width as u64);
    for (row, numbers) in rows.chunks_exact_mut(width).enumerate() {
        for number in numbers.iter_mut() {
            *number = random.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
        }
        numbers[row] += width as f64;
    }
}
