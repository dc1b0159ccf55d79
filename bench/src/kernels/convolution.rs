//! Repeated two-dimensional convolution: each pass blurs the last result, a band of rows a step.

use super::rows::{each_row, numbers};
use super::{Arrays, Crew, Kernel, Touch};
use crate::pattern::Random;

const BAND: usize = 256;
const WEIGHTS: [[i32; 3]; 3] = [[1, 2, 1], [2, 4, 2], [1, 2, 1]];

pub struct Convolution {
    height: usize,
    width: usize,
    passes: usize,
}

impl Convolution {
    pub fn new(height: usize, width: usize, passes: usize) -> Self {
        Convolution { height, width, passes }
    }

    fn bands(&self) -> usize {
        self.height.div_ceil(BAND)
    }

    fn target(&self, step: usize) -> (usize, std::ops::Range<usize>) {
        let (pass, band) = (step / self.bands(), step % self.bands());
        (1 - pass % 2, band * BAND..((band + 1) * BAND).min(self.height))
    }
}

impl Kernel for Convolution {
    fn name(&self) -> String {
        format!("2dConv {}×{} i32", self.height, self.width)
    }

    fn lengths(&self) -> Vec<usize> {
        vec![self.height * self.width * 4; 2]
    }

    fn fill(&self, arrays: Arrays<'_, '_>) {
        let mut random = Random::new(self.width as u64);
        numbers::<i32>(arrays[0]).fill_with(|| random.below(1 << 24) as i32);
    }

    fn steps(&self) -> usize {
        self.passes * self.bands()
    }

    fn touches(&self, step: usize, touch: Touch<'_>) {
        let (array, rows) = self.target(step);
        touch(array, rows.start * self.width * 4..rows.end * self.width * 4);
    }

    fn step(&self, step: usize, crew: &Crew, arrays: Arrays<'_, '_>) {
        let (width, height) = (self.width, self.height);
        let (target, rows) = self.target(step);
        let [first, second] = arrays else { unreachable!("two arrays") };
        let (from, to) = if target == 1 { (first, second) } else { (second, first) };
        let (from, to) = (&*numbers::<i32>(from), numbers::<i32>(to));
        let band = &mut to[rows.start * width..rows.end * width];
        each_row(band, width, rows.start, crew, |row, pixels| {
            let lines = [row.saturating_sub(1), row, (row + 1).min(height - 1)];
            let lines = lines.map(|line| &from[line * width..(line + 1) * width]);
            for (column, pixel) in pixels.iter_mut().enumerate() {
                let columns = [column.saturating_sub(1), column, (column + 1).min(width - 1)];
                let mut sum = 0_i32;
                for (line, weights) in lines.iter().zip(WEIGHTS) {
                    for (column, weight) in columns.iter().zip(weights) {
                        sum = sum.wrapping_add(line[*column].wrapping_mul(weight));
                    }
                }
                *pixel = sum / 16;
            }
        });
    }
}
