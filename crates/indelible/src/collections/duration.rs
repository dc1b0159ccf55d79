use super::into_persist::IntoPersist;
use super::key::{Compare, KeyHash, Lookup, StableHash};
use super::place::HeapRef;
use crate::error::Result;
use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

/// std's `Duration` with a fixed layout. Containers of it take, and look up, a `Duration`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{PDuration, PHashMap, PString};
/// use std::time::Duration;
///
/// let limits = heap.root_or_default::<PHashMap<PString, PDuration>>("limits")?;
/// limits.insert("connect", Duration::from_millis(1500));
/// assert_eq!(Duration::from(limits["connect"]), Duration::from_millis(1500));
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(
    indelible_derive::Persist,
    indelible_derive::Plain,
    indelible_derive::StableHash,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
)]
#[repr(C)]
pub struct PDuration {
    seconds: u64,
    nanoseconds: u32,
    /// Zero: no byte of the value is undefined.
    reserved: u32,
}

impl From<Duration> for PDuration {
    #[inline]
    fn from(value: Duration) -> Self {
        PDuration { seconds: value.as_secs(), nanoseconds: value.subsec_nanos(), reserved: 0 }
    }
}

impl From<PDuration> for Duration {
    #[inline]
    fn from(value: PDuration) -> Self {
        Duration::from_secs(value.seconds).saturating_add(Duration::from_nanos(value.nanoseconds.into()))
    }
}

impl fmt::Debug for PDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration::from(*self).fmt(f)
    }
}

impl StableHash for Duration {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        PDuration::from(*self).stable_hash(hash);
    }
}

impl<'h> IntoPersist<'h, PDuration> for Duration {
    #[inline]
    fn into_persist(self, _: HeapRef<'h>) -> Result<PDuration> {
        Ok(self.into())
    }
}

impl Lookup<PDuration> for Duration {
    #[inline]
    fn matches(&self, key: &PDuration) -> bool {
        PDuration::from(*self) == *key
    }
}

impl Compare<PDuration> for Duration {
    #[inline]
    fn compare(&self, key: &PDuration) -> Ordering {
        PDuration::from(*self).cmp(key)
    }
}
