//! Gaussian elimination, one pivot a step (S3.8).

use super::rows::{dominant, each_row, numbers};
use super::{Arrays, Crew, Kernel, Touch};

/// n equations: rows of n coefficients and the right side.
pub struct Gauss {
    n: usize,
}

impl Gauss {
    pub fn new(n: usize) -> Self {
        Gauss { n }
    }

    fn width(&self) -> usize {
        self.n + 1
    }
}

impl Kernel for Gauss {
    fn name(&self) -> String {
        format!("Gauss {0}² f64", self.n)
    }

    fn lengths(&self) -> Vec<usize> {
        vec![self.n * self.width() * 8]
    }

    fn fill(&self, arrays: Arrays<'_, '_>) {
        dominant(numbers(arrays[0]), self.width());
    }

    fn steps(&self) -> usize {
        self.n - 1
    }

    fn touches(&self, step: usize, touch: Touch<'_>) {
        let width = self.width();
        for row in step + 1..self.n {
            touch(0, (row * width + step) * 8..(row + 1) * width * 8);
        }
    }

    fn step(&self, step: usize, crew: &Crew, arrays: Arrays<'_, '_>) {
        let width = self.width();
        let (above, below) = numbers::<f64>(arrays[0]).split_at_mut((step + 1) * width);
        let pivot_row = &above[step * width..];
        each_row(below, width, step + 1, crew, |_, row| {
            let factor = row[step] / pivot_row[step];
            for (a, b) in row[step..].iter_mut().zip(&pivot_row[step..]) {
                *a -= factor * b;
            }
        });
    }
}
