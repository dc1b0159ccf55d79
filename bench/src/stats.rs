use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub p25: f64,
    pub p75: f64,
    pub count: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn spread(&self) -> Option<Spread> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let (p25, median, p75) =
            (quantile(&sorted, 0.25)?, quantile(&sorted, 0.5)?, quantile(&sorted, 0.75)?);
        Some(Spread { median, p25, p75, count: sorted.len() })
    }

    pub fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, q).unwrap_or(f64::NAN)
    }

    pub fn extend(&mut self, other: Samples) {
        self.0.extend(other.0);
    }

    pub fn median(&self) -> f64 {
        self.spread().map_or(f64::NAN, |spread| spread.median)
    }
}

fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = q * last as f64;
    let (low, high) = (rank.floor() as usize, rank.ceil() as usize);
    let share = rank - low as f64;
    Some(sorted[low] * (1.0 - share) + sorted[high] * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples(values.to_vec())
    }

    #[test]
    fn quartiles_lie_between_the_closest_ranks() {
        let spread = samples(&[5.0, 1.0, 4.0, 2.0, 3.0]).spread().unwrap();
        assert_eq!((spread.p25, spread.median, spread.p75, spread.count), (2.0, 3.0, 4.0, 5));
        let spread = samples(&[4.0, 1.0, 2.0, 3.0]).spread().unwrap();
        assert_eq!((spread.p25, spread.median, spread.p75), (1.75, 2.5, 3.25));
        assert_eq!(samples(&[3.0, 1.0, 2.0]).quantile(0.99), 2.98);
        let one = samples(&[7.0]).spread().unwrap();
        assert_eq!((one.p25, one.median, one.p75), (7.0, 7.0, 7.0));
    }

    #[test]
    fn nothing_measured_is_not_zero() {
        assert_eq!(Samples::default().spread(), None);
        assert!(Samples::default().median().is_nan());
    }
}
