//! Retention of periodic snapshots, named after their object and the time:
//! `ledger@2026-11-24T03:00:00Z`, with `-2` and so on behind it if there are several of one second.
//! No other one is touched.

use super::Pool;
use crate::error::{Cause, Result};
use indelible_store::error::StoreError;
use indelible_store::format::entry::{Entry, FLAG_BASE};
use indelible_store::table::Key;
use std::collections::HashSet;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A retention policy: a list of ages, each with a period. `24h:1h,7d:1d` keeps one snapshot per
/// hour of the last 24 hours, one per day of the older ones of the last 7 days, and the newest: by
/// its name, and the last one made, whatever the clock said then.
/// Units: `s`, `m`, `h`, `d`, `w`. Periods begin at whole hours and so on, in UTC.
///
/// ```
/// use indelible::Keep;
///
/// let keep: Keep = "24h:1h,7d:1d".parse()?;
/// assert!("24h".parse::<Keep>().is_err());
/// # let _ = keep;
/// # Ok::<(), indelible::BadKeep>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    rules: Vec<(u64, u64)>,
    now: Option<SystemTime>,
}

/// A text that is no retention policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part:?} {why}: a policy is a list such as 24h:1h,7d:1d, for one an hour within 24 hours and one a day within 7 days"
)]
pub struct BadKeep {
    part: String,
    why: &'static str,
}

impl FromStr for Keep {
    type Err = BadKeep;

    fn from_str(text: &str) -> Result<Self, BadKeep> {
        let mut rules: Vec<(u64, u64)> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let bad = |why| BadKeep { part: part.to_owned(), why };
            let (age, period) = part.split_once(':').ok_or_else(|| bad("has no period"))?;
            let (age, period) = (seconds(age).map_err(bad)?, seconds(period).map_err(bad)?);
            if period > age {
                return Err(bad("has a period that is longer than the age"));
            }
            if rules.iter().any(|(other, _)| *other == age) {
                return Err(bad("has an age that was there already"));
            }
            rules.push((age, period));
        }
        rules.sort_unstable();
        Ok(Keep { rules, now: None })
    }
}

fn seconds(text: &str) -> Result<u64, &'static str> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err("has a time that is no number with one of s, m, h, d and w"),
    };
    let number: u64 =
        text[..digits].parse().map_err(|_| "has a time without a number, or too large a one")?;
    match number.checked_mul(unit) {
        Some(0) => Err("has a time of 0"),
        Some(seconds) if seconds <= 1 << 40 => Ok(seconds),
        _ => Err("has too long a time"),
    }
}

type Moment = (u64, u64);

type ByTime = Vec<(Moment, Made)>;

/// By its ID: its name may be another snapshot's by the time that it is destroyed.
#[derive(PartialEq)]
struct Made {
    name: String,
    id: [u8; 16],
}

impl Keep {
    /// A time span such as `30d`. `None`: it is none.
    #[must_use]
    pub fn span(text: &str) -> Option<Duration> {
        seconds(text).ok().map(Duration::from_secs)
    }

    /// Counts ages from this time rather than from the call's.
    #[must_use]
    pub fn at(mut self, now: SystemTime) -> Self {
        self.now = Some(now);
        self
    }

    /// `all` without those that are kept; the `last` one made is, whatever its name says.
    fn surplus<N: PartialEq>(&self, mut all: Vec<(Moment, N)>, last: Option<&N>) -> Vec<N> {
        let now = self.now.unwrap_or_else(SystemTime::now);
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        all.sort_unstable_by_key(|(moment, _)| *moment);
        let (mut periods, mut surplus) = (HashSet::new(), Vec::new());
        for (nth, ((made, _), found)) in all.into_iter().rev().enumerate() {
            let age = now.saturating_sub(made);
            let rule = self.rules.iter().position(|(within, _)| age <= *within);
            let wanted = rule.is_some_and(|rule| periods.insert((rule, made / self.rules[rule].1)));
            if nth > 0 && !wanted && Some(&found) != last {
                surplus.push(found);
            }
        }
        surplus.reverse();
        surplus
    }
}

fn moment(text: &str) -> Option<Moment> {
    let (time, number) = text.split_once('Z')?;
    let number = match number.strip_prefix('-') {
        Some(number) => number.parse().ok().filter(|number| *number >= 2)?,
        None if number.is_empty() => 1,
        None => return None,
    };
    let shape = |(byte, like): (u8, u8)| if like == b'0' { byte.is_ascii_digit() } else { byte == like };
    if time.len() != 19 || !time.bytes().zip(*b"0000-00-00T00:00:00").all(shape) {
        return None;
    }
    let part = |at: usize, len: usize| time[at..at + len].parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 2)?, part(8, 2)?);
    let (hour, minute, second) = (part(11, 2)?, part(14, 2)?, part(17, 2)?);
    let possible =
        year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    if !possible || second > 60 {
        return None;
    }
    let years = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * years + years / 4 - years / 100 + years / 400 + day_of_year - 719_468;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second, number))
}

impl Pool {
    /// Snapshots that [`thin`](Pool::thin) destroys, oldest first. Only snapshots named after
    /// object and time, as by `pmo snapshot`, count.
    ///
    /// # Errors
    /// `NotFound`; those of the table.
    pub fn surplus(&self, name: &str, keep: &Keep) -> Result<Vec<String>> {
        Ok(self.unkept(name, keep)?.into_iter().map(|snapshot| snapshot.name).collect())
    }

    fn unkept(&self, name: &str, keep: &Keep) -> Result<Vec<Made>> {
        let found = self.inner.alive().and_then(|()| Ok(self.snapshots_by_time(name)?));
        let (all, last) = self.about("look for snapshots of", name, found)?;
        let mut unkept = keep.surplus(all, last.as_ref());
        unkept.retain(|snapshot| self.stat(&snapshot.name).is_ok_and(|stat| stat.holder.is_none()));
        Ok(unkept)
    }

    /// The snapshots, and the last one made: names say what the clock said, or were free again.
    fn snapshots_by_time(&self, name: &str) -> Result<(ByTime, Option<Made>), StoreError> {
        let store = &self.inner.store;
        let time = |full: &str| moment(full.strip_prefix(name)?.strip_prefix('@')?);
        let last = store.nearest_base(name, |entry| time(&entry.name()).is_some())?;
        let made = |entry: &Entry| Made { name: entry.name(), id: entry.id };
        let address = store.find(name)?.entry.address;
        let (mut found, mut from) = (Vec::new(), Some((0, 0)));
        while let Some(next) = from {
            let listing = store.list(next, 1024)?;
            for object in listing.objects {
                if let Some(time) = time(&object.entry.name())
                    && object.entry.has(FLAG_BASE)
                    && object.entry.address == address
                {
                    found.push((time, made(&object.entry)));
                }
            }
            from = listing.next;
        }
        Ok((found, last.map(|last| made(&last.entry))))
    }

    /// Destroys the [surplus](Pool::surplus) snapshots of an object, and merges their pages;
    /// returns their names.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("example.pmo");
    /// use indelible::{Keep, Pool};
    ///
    /// let pool = Pool::format(&path, 16 << 20)?;
    /// pool.create("ledger", 100_000)?;
    /// for day in 10..20 {
    ///     pool.snapshot("ledger", &format!("ledger@2026-11-{day}T03:00:00Z"), b"")?;
    /// }
    /// let keep: Keep = "24h:1h,52w:1w".parse().unwrap();
    /// // Without `at`, ages are counted back from the time of the call. Weeks begin on Thursdays, as in 1970.
    /// # use std::time::{Duration, UNIX_EPOCH};
    /// let keep = keep.at(UNIX_EPOCH + Duration::from_secs(1_795_523_400)); // 2026-11-24T12:30:00Z
    /// assert_eq!(pool.thin("ledger", &keep, b"")?.len(), 7); // the last ones of three weeks stay
    /// # Ok::<(), indelible::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `WrongKey`; those of [`destroy`](Pool::destroy) and of
    /// [`collect`](Pool::collect): earlier removals stay.
    pub fn thin(&self, name: &str, keep: &Keep, key: &[u8]) -> Result<Vec<String>> {
        let mut gone = Vec::new();
        for Made { name: snapshot, id } in self.unkept(name, keep)? {
            let destroyed = self.inner.store.destroy_id(&snapshot, &id, Key(key));
            match destroyed {
                Err(StoreError::Held { .. } | StoreError::NotFound) => {}
                destroyed => {
                    self.about("destroy", &snapshot, destroyed.map_err(Cause::from))?;
                    gone.push(snapshot);
                }
            }
        }
        if !gone.is_empty() {
            let merged = match self.inner.patiently(|| Ok(self.inner.store.merge(name)?)) {
                Err(Cause::Store(StoreError::NotFound)) => Ok(0),
                merged => merged,
            };
            self.about("merge what is left below", name, merged)?;
        }
        Ok(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: u64 = 1_795_523_400;

    fn keep(text: &str, now: u64) -> Keep {
        text.parse::<Keep>().unwrap().at(UNIX_EPOCH + Duration::from_secs(now))
    }

    fn left(policy: &str, ages: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let all: Vec<_> = ages.into_iter().map(|age| ((NOW - age, 1), age.to_string())).collect();
        let surplus = keep(policy, NOW).surplus(all.clone(), None);
        let mut left: Vec<u64> = all
            .iter()
            .filter(|(_, name)| !surplus.contains(name))
            .map(|(_, name)| name.parse().unwrap())
            .collect();
        left.sort_unstable();
        left
    }

    #[test]
    fn names_say_when() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some((0, 1)));
        assert_eq!(moment("2000-02-29T00:00:00Z-12"), Some((951_782_400, 12)));
        assert_eq!(moment("2024-02-29T23:59:59Z"), Some((1_709_251_199, 1)));
        assert_eq!(moment("2025-01-01T00:00:00Z-2"), Some((1_735_689_600, 2)));
        assert_eq!(moment("2026-11-24T12:30:00Z"), Some((NOW, 1)));
        for text in [
            "",
            "yesterday",
            "2025-01-01T00:00:00",
            "2025-01-01T00:00:00Z-",
            "2025-01-01T00:00:00Z-1",
            "2025-01-01T00:00:00Z ",
            "2025-13-01T00:00:00Z",
            "2025-01-00T00:00:00Z",
            "2025-01-01T24:00:00Z",
            "1969-12-31T23:59:59Z",
            "+025-01-01T00:00:00Z",
            "2025-01-01t00:00:00Z",
            "2025-01-01T00:00:0éZ",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn policies_that_make_no_sense_are_refused() {
        for (text, part) in [
            ("", "\"\" has no period"),
            ("24h", "\"24h\" has no period"),
            ("24h:1h,", "\"\" has no period"),
            ("24h:", "no number with one of"),
            ("24:1h", "no number with one of"),
            ("24h:1x", "no number with one of"),
            ("h:1h", "without a number"),
            ("-1h:1h", "no number with one of"),
            ("24h:0h", "a time of 0"),
            ("1h:24h", "longer than the age"),
            ("24h:1h,1d:2h", "there already"),
            ("99999999999999w:1h", "too long"),
            ("99999999999999999999999w:1h", "too large"),
        ] {
            let error = text.parse::<Keep>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("24h:1h,7d:1d"), "{text}: {error}");
        }
        assert_eq!("7d:1d , 24h:1h".parse::<Keep>(), "24h:1h,7d:1d".parse());
    }

    #[test]
    fn of_each_period_the_newest_is_kept() {
        const HOUR: u64 = 3600;
        let kept = left("3h:1h", (0..400).map(|nth| nth * 600));
        assert_eq!(kept, [0, HOUR / 2 + 600, HOUR + HOUR / 2 + 600, 2 * HOUR + HOUR / 2 + 600]);
        assert_eq!(left("1d:1h", [2 * HOUR, 90 * HOUR, 95 * HOUR]), [2 * HOUR]);
        assert_eq!(left("1d:1h", [90 * HOUR, 95 * HOUR]), [90 * HOUR]);
        assert_eq!(left("1d:1h", []), Vec::<u64>::new());
    }

    #[test]
    fn snapshots_thinned_again_and_again_stay_evenly_spread() {
        let mut all: Vec<(Moment, String)> = Vec::new();
        for hour in 0..30 * 24 {
            let now = NOW + hour * 3600;
            all.push(((now, 1), now.to_string()));
            let surplus = keep("24h:1h,7d:1d", now).surplus(all.clone(), None);
            all.retain(|(_, name)| !surplus.contains(name));
        }
        let now = NOW + (30 * 24 - 1) * 3600;
        let ages: Vec<u64> = all.iter().rev().map(|((made, _), _)| (now - made) / 3600).collect();
        assert_eq!(ages[..25], (0..25).collect::<Vec<_>>()[..]);
        let days: Vec<u64> = all.iter().map(|((made, _), _)| made / 86_400).collect();
        let last = now / 86_400;
        assert!((last - 6..=last).all(|day| days.contains(&day)), "{ages:?}");
        assert!(all.len() <= 25 + 7, "{ages:?}");
    }

    #[test]
    fn snapshots_of_a_clock_that_went_wrong_are_the_newest() {
        let all = vec![((NOW + 500, 1), "later".to_owned()), ((NOW - 10, 1), "before".to_owned())];
        assert_eq!(keep("24h:1h", NOW).surplus(all, None), ["before"]);
    }
}
