use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Speed of a simulated medium, for measurements; not part of the stable interface. Every call
/// takes at least the modelled time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumModel {
    /// Latency of a read that misses the cache.
    pub read: Duration,
    /// Bytes read per second, at least 1, shared by all of a pool.
    pub read_rate: u64,
    /// Latency of a write that need not be durable.
    pub write: Duration,
    /// Bytes written per second, at least 1, sharing time with reads.
    pub write_rate: u64,
    /// Bytes of writes in flight before a write waits.
    pub buffer: u64,
    /// Latency of a barrier, after earlier writes have arrived.
    pub barrier: Duration,
    /// Latency of a durable write.
    pub durable: Duration,
    /// Transfer unit in bytes, a power of two.
    pub unit: u32,
    /// Faster memory in front of it.
    pub cache: Option<CacheModel>,
}

/// A direct-mapped, write-through cache of 4 KiB pages. Part of [`MediumModel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheModel {
    /// Bytes.
    pub bytes: u64,
    /// Latency of a hit.
    pub read: Duration,
    /// Bytes per second of hits, at least 1.
    pub read_rate: u64,
}

const PAGE: u64 = 4096;

impl MediumModel {
    fn moved(&self, offset: u64, len: u64) -> u64 {
        let unit = u64::from(self.unit.max(1));
        if len == 0 { 0 } else { (offset + len).next_multiple_of(unit) - offset / unit * unit }
    }

    pub(crate) fn page(&self) -> Duration {
        self.read + moving(self.moved(0, PAGE), self.read_rate)
    }
}

fn moving(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos((u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1))) as u64)
}

/// Shared state of a modelled medium: when it is idle, and its cache.
pub struct Traffic {
    model: MediumModel,
    epoch: Instant,
    free: AtomicU64,
    cached: Box<[AtomicU64]>,
    /// Nanoseconds to deduct from later calls: reading the clock takes as long as reading memory.
    late: AtomicI64,
    price: Duration,
}

impl Traffic {
    /// An idle medium with an empty cache.
    #[must_use]
    pub fn new(model: MediumModel) -> Traffic {
        let pages = model.cache.map_or(0, |cache| cache.bytes / PAGE);
        let mut traffic = Traffic {
            model,
            epoch: Instant::now(),
            free: AtomicU64::new(0),
            cached: (0..pages).map(|_| AtomicU64::new(0)).collect(),
            late: AtomicI64::new(0),
            price: Duration::ZERO,
        };
        traffic.price = traffic.measure_price();
        traffic
    }

    fn measure_price(&self) -> Duration {
        const LONG: Duration = Duration::from_nanos(500);
        const CALLS: u32 = 32;
        let mut prices: Vec<Duration> = (0..33)
            .map(|_| {
                let all = Instant::now();
                for _ in 0..CALLS {
                    let begin = Instant::now();
                    self.pass(begin, self.book(begin, Duration::ZERO) + LONG);
                }
                (all.elapsed() / CALLS).saturating_sub(LONG)
            })
            .collect();
        prices.sort_unstable();
        prices[prices.len() / 2]
    }

    fn book(&self, begin: Instant, long: Duration) -> Instant {
        let now = (begin - self.epoch).as_nanos() as u64;
        let long = long.as_nanos() as u64;
        let after = |free: u64| Some(free.max(now) + long);
        let was =
            self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).unwrap_or_else(|was| was);
        self.epoch + Duration::from_nanos(was.max(now) + long)
    }

    fn look(&self, offset: u64, len: u64) -> (u64, u64) {
        let all = self.model.moved(offset, len);
        if self.cached.is_empty() || len == 0 {
            return (0, all);
        }
        let (mut missed, pages) = (0, offset / PAGE..(offset + len).div_ceil(PAGE));
        let count = pages.end - pages.start;
        for page in pages {
            let place = &self.cached[(page % self.cached.len() as u64) as usize];
            missed += u64::from(place.swap(page + 1, Ordering::Relaxed) != page + 1);
        }
        let from_medium = all * missed / count;
        (all - from_medium, from_medium)
    }

    /// Waits for a read's modelled time.
    pub fn read(&self, begin: Instant, offset: u64, len: u64) {
        let (hit, missed) = self.look(offset, len);
        let mut done = begin;
        if let Some(cache) = self.model.cache.filter(|_| hit > 0) {
            done = begin + cache.read + moving(hit, cache.read_rate);
        }
        if missed > 0 {
            done = done.max(self.book(begin, moving(missed, self.model.read_rate)) + self.model.read);
        }
        self.pass(begin, done);
    }

    /// Waits for a write's modelled time.
    pub fn write(&self, begin: Instant, offset: u64, len: u64) {
        self.look(offset, len);
        let arrived = self.book(begin, moving(self.model.moved(offset, len), self.model.write_rate));
        let waits = moving(self.model.buffer, self.model.write_rate);
        let accepted = arrived.checked_sub(waits).unwrap_or(begin);
        self.pass(begin, accepted.max(begin + self.model.write));
    }

    /// Waits for a durable write's modelled time.
    pub fn write_durable(&self, begin: Instant, offset: u64, len: u64) {
        self.look(offset, len);
        let arrived = self.book(begin, moving(self.model.moved(offset, len), self.model.write_rate));
        self.pass(begin, arrived + self.model.durable);
    }

    /// Waits for a barrier's modelled time.
    pub fn barrier(&self, begin: Instant) {
        self.pass(begin, self.book(begin, Duration::ZERO) + self.model.barrier);
    }

    fn pass(&self, begin: Instant, end: Instant) {
        const HABIT: i64 = 1000;
        let long = end.saturating_duration_since(begin);
        if long.is_zero() {
            return;
        }
        let early = self.late.load(Ordering::Relaxed).clamp(0, long.as_nanos() as i64 / 3);
        let target = end - self.price.min(long / 2) - Duration::from_nanos(early as u64);
        let late = (wait_until(target) - target).as_nanos() as i64;
        let more = if late < HABIT { late } else { 0 };
        let owed = |owed: i64| Some((owed - early + more).clamp(0, HABIT));
        let _ = self.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, owed);
    }
}

fn wait_until(end: Instant) -> Instant {
    const LATE: Duration = Duration::from_micros(100);
    let mut now = Instant::now();
    if let Some(left) = end.checked_duration_since(now).filter(|left| *left > LATE) {
        std::thread::sleep(left - LATE);
    }
    while now < end {
        std::hint::spin_loop();
        now = Instant::now();
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn model() -> MediumModel {
        MediumModel {
            read: 2 * MS,
            read_rate: 1_000_000,
            write: Duration::ZERO,
            write_rate: 1_000_000,
            buffer: 0,
            barrier: 5 * MS,
            durable: 3 * MS,
            unit: 1,
            cache: None,
        }
    }

    fn took(f: impl FnOnce(Instant)) -> Duration {
        let begin = Instant::now();
        f(begin);
        begin.elapsed() + MS / 50
    }

    #[test]
    fn whole_units_are_moved() {
        let model = MediumModel { unit: 256, ..model() };
        let moved =
            [(0, 0), (0, 1), (255, 2), (256, 256), (4000, 4096)].map(|(at, len)| model.moved(at, len));
        assert_eq!(moved, [0, 256, 512, 256, 4352]);
        assert_eq!(model.page(), 2 * MS + Duration::from_micros(4096));
    }

    #[test]
    fn each_call_takes_its_time() {
        let traffic = Traffic::new(model());
        assert!(took(|begin| traffic.read(begin, 0, 1000)) >= 3 * MS);
        assert!(took(|begin| traffic.write(begin, 0, 2000)) >= 2 * MS);
        assert!(took(|begin| traffic.write_durable(begin, 0, 1000)) >= 4 * MS);
        assert!(took(|begin| traffic.barrier(begin)) >= 5 * MS);
    }

    #[test]
    fn calls_share_the_bytes_a_second() {
        let traffic = Traffic::new(model());
        let begin = Instant::now();
        let first = traffic.book(begin, MS);
        assert_eq!((first - begin, traffic.book(begin, 2 * MS) - first), (MS, 2 * MS));
        let later = begin + 10 * MS;
        assert_eq!(traffic.book(later, MS) - later, MS);
    }

    #[test]
    fn writes_wait_in_the_buffer_and_barriers_for_them() {
        let traffic = Traffic::new(MediumModel { buffer: 1 << 40, ..model() });
        let begin = Instant::now();
        traffic.write(begin, 0, 50_000);
        let arrived = traffic.book(begin, Duration::ZERO);
        assert_eq!(arrived - begin, 50 * MS);
        traffic.barrier(begin);
        assert!(begin.elapsed() + MS / 50 >= 55 * MS);
    }

    #[test]
    fn pages_that_were_used_last_are_in_the_cache() {
        let cache = CacheModel { bytes: 4 * PAGE, read: Duration::ZERO, read_rate: u64::MAX };
        let traffic = Traffic::new(MediumModel { cache: Some(cache), ..model() });
        assert_eq!(traffic.look(0, 2 * PAGE), (0, 2 * PAGE));
        assert_eq!(traffic.look(PAGE, 2 * PAGE), (PAGE, PAGE));
        assert_eq!(traffic.look(4 * PAGE, 1), (0, 1));
        assert_eq!(traffic.look(0, PAGE), (0, PAGE));
        assert_eq!(traffic.look(2 * PAGE, PAGE), (PAGE, 0));
    }

    #[test]
    fn lateness_is_made_up_for() {
        let traffic = Traffic::new(model());
        traffic.late.store(900, Ordering::Relaxed);
        let begin = Instant::now();
        traffic.pass(begin, begin + MS);
        assert!(begin.elapsed() + MS / 50 >= MS);
        traffic.late.store(0, Ordering::Relaxed);
        traffic.pass(begin, begin);
        assert_eq!(traffic.late.load(Ordering::Relaxed), 0);
    }
}
