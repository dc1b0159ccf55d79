use crate::pattern::Random;

/// In (0, 1).
fn uniform(random: &mut Random) -> f64 {
    ((random.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// A gamma distribution of shape 1.5: an exponential (shape 1) plus half the square of a normal
/// (shape 1/2).
pub fn gamma(random: &mut Random, mean: usize) -> usize {
    let exponential = -uniform(random).ln();
    let (radius, angle) = (-uniform(random).ln(), uniform(random) * std::f64::consts::TAU);
    // Box and Muller: the square of the normal is 2 radius cos².
    let half_square = radius * angle.cos().powi(2);
    (((exponential + half_square) * mean as f64 / 1.5) as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_are_the_distribution_s() {
        let mut random = Random::new(1);
        let count = 200_000;
        let sizes: Vec<f64> = (0..count).map(|_| gamma(&mut random, 16_384) as f64).collect();
        let mean = sizes.iter().sum::<f64>() / f64::from(count);
        let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / f64::from(count);
        assert!((mean / 16_384.0 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance / (16_384.0_f64.powi(2) / 1.5) - 1.0).abs() < 0.03, "{variance}");
    }
}
