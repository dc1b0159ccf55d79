//! LU decomposition in place, by blocks of columns.

use super::rows::{dominant, each_row, numbers};
use super::{Arrays, Crew, Kernel, Touch};

const BLOCK: usize = 32;

pub struct Lu {
    n: usize,
}

impl Lu {
    pub fn new(n: usize) -> Self {
        Lu { n }
    }
}

fn subtract(row: &mut [f64], factor: f64, other: &[f64]) {
    for (a, b) in row.iter_mut().zip(other) {
        *a -= factor * b;
    }
}

impl Kernel for Lu {
    fn name(&self) -> String {
        format!("LU {0}² f64", self.n)
    }

    fn lengths(&self) -> Vec<usize> {
        vec![self.n * self.n * 8]
    }

    fn fill(&self, arrays: Arrays<'_, '_>) {
        dominant(numbers(arrays[0]), self.n);
    }

    fn steps(&self) -> usize {
        self.n.div_ceil(BLOCK)
    }

    fn touches(&self, step: usize, touch: Touch<'_>) {
        let from = step * BLOCK;
        for row in from..self.n {
            touch(0, (row * self.n + from) * 8..(row + 1) * self.n * 8);
        }
    }

    fn step(&self, step: usize, crew: &Crew, arrays: Arrays<'_, '_>) {
        let (n, from) = (self.n, step * BLOCK);
        let to = (from + BLOCK).min(n);
        let (above, below) = numbers::<f64>(arrays[0]).split_at_mut(to * n);
        for pivot in from..to {
            let (done, rest) = above.split_at_mut((pivot + 1) * n);
            let pivot_row = &done[pivot * n..];
            for row in rest.chunks_exact_mut(n) {
                row[pivot] /= pivot_row[pivot];
                let factor = row[pivot];
                subtract(&mut row[pivot + 1..], factor, &pivot_row[pivot + 1..]);
            }
        }
        let block = &above[from * n..];
        each_row(below, n, to, crew, |_, row| {
            for (pivot, pivot_row) in (from..to).zip(block.chunks_exact(n)) {
                row[pivot] /= pivot_row[pivot];
                let factor = row[pivot];
                subtract(&mut row[pivot + 1..], factor, &pivot_row[pivot + 1..]);
            }
        });
    }
}
