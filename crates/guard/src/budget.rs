//! The bytes that may be not durable: what can be written between power failure and power loss
//! (S1.6, S1.10).

use std::collections::VecDeque;
use std::time::Duration;

/// Bytes per second of a medium before any measurement.
pub const ASSUMED: u64 = 8 << 20;
const EPOCHS: usize = 16;

/// The time that a power failure leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Time from the failure until the machine stops.
    pub hold_up: Duration,
    /// Safety margin.
    pub safety: Duration,
    /// Bytes per second, if not to be measured.
    pub bandwidth: Option<u64>,
}

impl Budget {
    /// Time left for writing after a detection of this latency.
    #[must_use]
    pub fn time(&self, latency: Duration) -> Duration {
        self.hold_up.saturating_sub(latency).saturating_sub(self.safety)
    }

    pub(crate) fn share(&self, latency: Duration, parts: usize, rate: &Rate) -> u64 {
        let bandwidth = self.bandwidth.or(rate.bytes_per_second()).unwrap_or(ASSUMED);
        let time = self.time(latency).as_nanos() / parts.max(1) as u128;
        let bytes = u128::from(bandwidth) * time / Duration::from_secs(1).as_nanos();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Rate(VecDeque<(u64, Duration)>);

impl Rate {
    pub(crate) fn note(&mut self, bytes: u64, took: Duration) {
        if bytes > 0 {
            self.0.push_back((bytes, took));
            if self.0.len() > EPOCHS {
                self.0.pop_front();
            }
        }
    }

    /// Small epochs wait more than they write: the budget is never too large.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        let bytes: u128 = self.0.iter().map(|(bytes, _)| u128::from(*bytes)).sum();
        let time: u128 = self.0.iter().map(|(_, took)| took.as_nanos()).sum();
        let rate = (bytes * Duration::from_secs(1).as_nanos()).checked_div(time.max(1))?;
        (bytes > 0).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn s1_10_the_budget_is_the_time_that_is_left_times_the_bandwidth() {
        let budget = Budget { hold_up: millis(1000), safety: millis(200), bandwidth: Some(1 << 20) };
        let rate = Rate::default();
        assert_eq!(budget.share(millis(300), 1, &rate), (1 << 20) / 2);
        assert_eq!(budget.share(millis(300), 4, &rate), (1 << 20) / 8);
        assert_eq!(budget.share(millis(800), 1, &rate), 0, "the failure is told too late");
        assert_eq!(budget.share(millis(9000), 1, &rate), 0);
        let measured = Budget { bandwidth: None, ..budget };
        assert_eq!(measured.share(millis(300), 1, &rate), ASSUMED / 2);
        let mut rate = Rate::default();
        rate.note(0, millis(50));
        rate.note(100, millis(1));
        rate.note(1900, millis(3));
        assert_eq!(rate.bytes_per_second(), Some(500_000));
        assert_eq!(measured.share(millis(300), 1, &rate), 250_000);
        (0..100).for_each(|_| rate.note(1000, millis(1000)));
        assert_eq!(rate.bytes_per_second(), Some(1000), "the last epochs alone count");
        rate.note(u64::MAX, Duration::ZERO);
        assert!(rate.bytes_per_second().unwrap() > 1000, "no figure is too large");
    }
}
