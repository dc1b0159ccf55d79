use super::into_persist::IntoPersist;
use super::key::{Compare, KeyHash, Lookup, StableHash};
use super::place::HeapRef;
use crate::error::Result;
use std::cmp::Ordering;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// std's `IpAddr` with a fixed layout. Containers of it take, and look up, an `IpAddr`, `Ipv4Addr`
/// or `Ipv6Addr`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{PBTreeMap, PIpAddr};
/// use std::net::{IpAddr, Ipv4Addr};
///
/// let hits = heap.root_or_default::<PBTreeMap<PIpAddr, u64>>("hits")?;
/// hits.insert(Ipv4Addr::LOCALHOST, 1_u64);
/// assert_eq!(hits.get(&IpAddr::from([127, 0, 0, 1])), Some(&1));
/// assert!(hits.keys().all(|address| IpAddr::from(*address).is_loopback()));
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(
    indelible_derive::Persist, indelible_derive::StableHash, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
)]
#[repr(u8)]
pub enum PIpAddr {
    /// Version 4.
    V4([u8; 4]) = 4,
    /// Version 6.
    V6([u8; 16]) = 6,
}

impl From<IpAddr> for PIpAddr {
    #[inline]
    fn from(value: IpAddr) -> Self {
        match value {
            IpAddr::V4(value) => value.into(),
            IpAddr::V6(value) => value.into(),
        }
    }
}

impl From<Ipv4Addr> for PIpAddr {
    #[inline]
    fn from(value: Ipv4Addr) -> Self {
        PIpAddr::V4(value.octets())
    }
}

impl From<Ipv6Addr> for PIpAddr {
    #[inline]
    fn from(value: Ipv6Addr) -> Self {
        PIpAddr::V6(value.octets())
    }
}

impl From<PIpAddr> for IpAddr {
    #[inline]
    fn from(value: PIpAddr) -> Self {
        match value {
            PIpAddr::V4(bytes) => bytes.into(),
            PIpAddr::V6(bytes) => bytes.into(),
        }
    }
}

impl fmt::Display for PIpAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&IpAddr::from(*self), f)
    }
}

impl fmt::Debug for PIpAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! of_std {
    ($($ty:ty)*) => { $(
        impl StableHash for $ty {
            #[inline]
            fn stable_hash(&self, hash: &mut KeyHash) {
                PIpAddr::from(*self).stable_hash(hash);
            }
        }

        impl<'h> IntoPersist<'h, PIpAddr> for $ty {
            #[inline]
            fn into_persist(self, _: HeapRef<'h>) -> Result<PIpAddr> {
                Ok(self.into())
            }
        }

        impl Lookup<PIpAddr> for $ty {
            #[inline]
            fn matches(&self, key: &PIpAddr) -> bool {
                PIpAddr::from(*self) == *key
            }
        }

        impl Compare<PIpAddr> for $ty {
            #[inline]
            fn compare(&self, key: &PIpAddr) -> Ordering {
                PIpAddr::from(*self).cmp(key)
            }
        }
    )* };
}

of_std!(IpAddr Ipv4Addr Ipv6Addr);
