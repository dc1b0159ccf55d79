//! Tiled matrix multiplication: each step adds the products of one tile, which changes all of the
//! result.

use super::rows::{each_row, numbers};
use super::{Arrays, Crew, Kernel, Touch};
use crate::pattern::Random;

const TILE: usize = 32;

pub struct Multiply {
    n: usize,
}

impl Multiply {
    pub fn new(n: usize) -> Self {
        Multiply { n }
    }
}

impl Kernel for Multiply {
    fn name(&self) -> String {
        format!("TMM {0}² i32", self.n)
    }

    fn lengths(&self) -> Vec<usize> {
        vec![self.n * self.n * 4; 3]
    }

    fn fill(&self, arrays: Arrays<'_, '_>) {
        let mut random = Random::new(self.n as u64);
        for array in arrays[..2].iter_mut() {
            numbers::<i32>(array).fill_with(|| random.next() as i32);
        }
    }

    fn steps(&self) -> usize {
        self.n.div_ceil(TILE)
    }

    fn touches(&self, _: usize, touch: Touch<'_>) {
        touch(2, 0..self.n * self.n * 4);
    }

    fn step(&self, step: usize, crew: &Crew, arrays: Arrays<'_, '_>) {
        let n = self.n;
        let [a, b, c] = arrays else { unreachable!("three arrays") };
        let (a, b, c) = (&*numbers::<i32>(a), &*numbers::<i32>(b), numbers::<i32>(c));
        let tile = step * TILE..((step + 1) * TILE).min(n);
        each_row(c, n, 0, crew, |row, sums| {
            for k in tile.clone() {
                let factor = a[row * n + k];
                for (sum, number) in sums.iter_mut().zip(&b[k * n..(k + 1) * n]) {
                    *sum = sum.wrapping_add(factor.wrapping_mul(*number));
                }
            }
        });
    }
}
