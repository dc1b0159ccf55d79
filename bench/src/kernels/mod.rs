//! The papers' computations (S0.31, S3.8): arrays changed in steps, which may be made durable in
//! between.
//!
//! A result depends neither on the backend nor on the number of threads: rows are independent
//! within a step, each computed in one order.

mod convolution;
mod gauss;
mod lu;
mod multiply;
mod rows;

use std::ops::Range;

pub use convolution::Convolution;
pub use gauss::Gauss;
pub use lu::Lu;
pub use multiply::Multiply;

pub type Arrays<'a, 'b> = &'a mut [&'b mut [u8]];

/// Announces bytes of an array that a step may change.
pub type Touch<'a> = &'a mut dyn FnMut(usize, Range<usize>);

pub type Crew = rayon::ThreadPool;

pub fn crew(threads: usize) -> crate::Result<Crew> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?)
}

pub trait Kernel {
    fn name(&self) -> String;

    fn lengths(&self) -> Vec<usize>;

    fn fill(&self, arrays: Arrays<'_, '_>);

    fn steps(&self) -> usize;

    fn touches(&self, step: usize, touch: Touch<'_>);

    fn step(&self, step: usize, crew: &Crew, arrays: Arrays<'_, '_>);
}

/// Equal for equal results.
pub fn fingerprint(arrays: Arrays<'_, '_>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in arrays.iter().flat_map(|array| array.chunks(8)) {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        hash = (hash.rotate_left(5) ^ u64::from_ne_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kernel: &dyn Kernel, threads: usize) -> Vec<Vec<u8>> {
        let crew = crew(threads).unwrap();
        let mut memory: Vec<Vec<u64>> = kernel.lengths().iter().map(|len| vec![0; len.div_ceil(8)]).collect();
        let mut arrays: Vec<&mut [u8]> =
            memory.iter_mut().map(|words| zerocopy::IntoBytes::as_mut_bytes(words.as_mut_slice())).collect();
        kernel.fill(&mut arrays);
        for step in 0..kernel.steps() {
            let before: Vec<Vec<u8>> = arrays.iter().map(|array| array.to_vec()).collect();
            kernel.step(step, &crew, &mut arrays);
            let mut named: Vec<Vec<bool>> = arrays.iter().map(|array| vec![false; array.len()]).collect();
            kernel.touches(step, &mut |array, range| named[array][range].fill(true));
            for (array, (before, after)) in before.iter().zip(&arrays).enumerate() {
                let changed = (0..before.len()).filter(|at| before[*at] != after[*at]);
                assert!(changed.clone().all(|at| named[array][at]), "{} changed more", kernel.name());
            }
        }
        arrays.iter().map(|array| array.to_vec()).collect()
    }

    fn words<T: zerocopy::FromBytes + Copy>(bytes: &[u8]) -> Vec<T> {
        bytes.chunks_exact(size_of::<T>()).map(|word| T::read_from_bytes(word).unwrap()).collect()
    }

    #[test]
    fn threads_do_not_change_the_result() {
        let kernels: [&dyn Kernel; 4] =
            [&Lu::new(100), &Gauss::new(50), &Multiply::new(70), &Convolution::new(40, 24, 5)];
        for kernel in kernels {
            let one = run(kernel, 1);
            assert_eq!(one, run(kernel, 3), "{}", kernel.name());
        }
    }

    #[test]
    fn the_factors_give_the_matrix_back() {
        const N: usize = 100;
        let kernel = Lu::new(N);
        let mut input = vec![0_u64; N * N];
        kernel.fill(&mut [zerocopy::IntoBytes::as_mut_bytes(input.as_mut_slice())]);
        let input: Vec<f64> = input.into_iter().map(f64::from_bits).collect();
        let factors: Vec<f64> = words(&run(&kernel, 2)[0]);
        for (row, column) in (0..N).flat_map(|row| (0..N).map(move |column| (row, column))) {
            let lower = |k: usize| if k == row { 1.0 } else { factors[row * N + k] };
            let sum: f64 = (0..=row.min(column)).map(|k| lower(k) * factors[k * N + column]).sum();
            assert!((sum - input[row * N + column]).abs() < 1e-9, "{row}, {column}");
        }
    }

    #[test]
    fn elimination_leaves_zeros_below_the_diagonal() {
        const N: usize = 50;
        let rows: Vec<f64> = words(&run(&Gauss::new(N), 2)[0]);
        for row in 1..N {
            for column in 0..row {
                assert!(rows[row * (N + 1) + column].abs() < 1e-9);
            }
        }
        assert!(rows[0] != 0.0);
    }

    #[test]
    fn products_are_products() {
        const N: usize = 70;
        let arrays = run(&Multiply::new(N), 2);
        let [a, b, c]: [Vec<i32>; 3] = [0, 1, 2].map(|array| words(&arrays[array]));
        for (row, column) in [(0, 0), (3, 69), (69, 1), (41, 42)] {
            let sum =
                (0..N).fold(0_i32, |sum, k| sum.wrapping_add(a[row * N + k].wrapping_mul(b[k * N + column])));
            assert_eq!(sum, c[row * N + column]);
        }
    }
}
