use anyhow::Result;
use indelible_record::add;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Times(Vec<f64>);

impl Times {
    pub(super) fn push(&mut self, microseconds: f64) {
        self.0.push(microseconds);
    }

    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let at = (share * (sorted.len().max(1) - 1) as f64).ceil() as usize;
        sorted.get(at).copied().unwrap_or(0.0)
    }

    pub(super) fn count(&self, counts: &mut BTreeMap<String, u64>, what: &str) {
        let figures = [("median", 0.5), ("95th percentile", 0.95), ("worst", 1.0)];
        for (figure, share) in figures {
            add(counts, &format!("{what}, µs, {figure}"), self.quantile(share).round() as u64);
        }
        add(counts, &format!("{what}, times"), self.0.len() as u64);
    }
}

pub(super) fn timed<T>(call: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let begin = std::time::Instant::now();
    let done = call()?;
    Ok((done, begin.elapsed().as_secs_f64() * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let mut times = Times::default();
        assert_eq!(times.quantile(0.5), 0.0);
        (1..=100).rev().for_each(|time| times.push(f64::from(time)));
        assert_eq!([0.0, 0.5, 0.95, 1.0].map(|share| times.quantile(share)), [1.0, 51.0, 96.0, 100.0]);
        let mut counts = BTreeMap::new();
        times.count(&mut counts, "x");
        assert_eq!(counts["x, µs, worst"], 100);
        assert_eq!(counts["x, times"], 100);
    }
}
