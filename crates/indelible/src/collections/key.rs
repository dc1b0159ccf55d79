//! Keys: hashes that never change (FORMAT.md), and lookup by other types.

use super::boxed::PBox;
use super::persist::Persist;
use super::rc::PRc;
use super::string::PString;
use super::vec::PVec;
use indelible_store::format::checksum;
use std::cmp::Ordering;

/// A hash being computed.
#[derive(Clone, Copy, Debug)]
pub struct KeyHash(u64);

impl KeyHash {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Begins with a map's seed.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64) -> KeyHash {
        KeyHash(seed)
    }

    /// Adds a number: the folded 128-bit product.
    #[inline]
    pub const fn number(&mut self, number: u64) {
        let product = (self.0 ^ number) as u128 * KeyHash::FACTOR as u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    /// Adds bytes: their number, and their XXH3 seeded with the hash so far.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0 = checksum(self.0, &[bytes]);
    }

    /// The hash.
    #[inline]
    #[must_use]
    pub const fn finish(self) -> u64 {
        self.0
    }
}

/// A key type of hash maps: its hash never changes. Derive it for structs, and for enums with an
/// integer as `repr`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no hash that stays the same in every build",
    label = "not `StableHash`",
    note = "integers, NonZero ones too, bool, char, strings, arrays and vectors of these have; derive it for your own types with #[derive(StableHash)]"
)]
pub trait StableHash {
    /// Adds the value; equal values add the same.
    fn stable_hash(&self, hash: &mut KeyHash);

    /// Adds consecutive values.
    #[doc(hidden)]
    #[inline]
    fn stable_hash_all(values: &[Self], hash: &mut KeyHash)
    where
        Self: Sized,
    {
        hash.number(values.len() as u64);
        values.iter().for_each(|value| value.stable_hash(hash));
    }
}

impl StableHash for u8 {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        hash.number((*self).into());
    }

    #[inline]
    fn stable_hash_all(values: &[u8], hash: &mut KeyHash) {
        hash.bytes(values);
    }
}

macro_rules! number {
    ($($ty:ty),*) => {
        $(
            impl StableHash for $ty {
                #[inline]
                fn stable_hash(&self, hash: &mut KeyHash) {
                    hash.number(*self as u64);
                }
            }
        )*
    };
}

number!(u16, u32, u64, usize, i8, i16, i32, i64, isize, bool, char);

macro_rules! nonzero {
    ($($ty:ident)*) => {
        $(
            impl StableHash for std::num::$ty {
                #[inline]
                fn stable_hash(&self, hash: &mut KeyHash) {
                    self.get().stable_hash(hash);
                }
            }
        )*
    };
}

nonzero!(NonZeroU8 NonZeroU16 NonZeroU32 NonZeroU64 NonZeroU128 NonZeroUsize);
nonzero!(NonZeroI8 NonZeroI16 NonZeroI32 NonZeroI64 NonZeroI128 NonZeroIsize);

impl StableHash for u128 {
    fn stable_hash(&self, hash: &mut KeyHash) {
        hash.number(*self as u64);
        hash.number((*self >> 64) as u64);
    }
}

impl StableHash for i128 {
    fn stable_hash(&self, hash: &mut KeyHash) {
        (*self as u128).stable_hash(hash);
    }
}

impl StableHash for () {
    fn stable_hash(&self, _: &mut KeyHash) {}
}

impl StableHash for str {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        hash.bytes(self.as_bytes());
    }
}

impl StableHash for String {
    fn stable_hash(&self, hash: &mut KeyHash) {
        self.as_str().stable_hash(hash);
    }
}

impl StableHash for PString<'_> {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        hash.bytes(self.as_bytes());
    }
}

impl<T: StableHash> StableHash for [T] {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        T::stable_hash_all(self, hash);
    }
}

impl<T: StableHash, const N: usize> StableHash for [T; N] {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        self.as_slice().stable_hash(hash);
    }
}

impl<T: StableHash> StableHash for Vec<T> {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        self.as_slice().stable_hash(hash);
    }
}

impl<'h, T: Persist<'h> + StableHash> StableHash for PVec<'h, T> {
    fn stable_hash(&self, hash: &mut KeyHash) {
        self.as_slice().stable_hash(hash);
    }
}

impl<'h, T: Persist<'h> + StableHash> StableHash for PBox<'h, T> {
    fn stable_hash(&self, hash: &mut KeyHash) {
        (**self).stable_hash(hash);
    }
}

impl<'h, T: Persist<'h> + StableHash> StableHash for PRc<'h, T> {
    fn stable_hash(&self, hash: &mut KeyHash) {
        (**self).stable_hash(hash);
    }
}

impl<T: StableHash + ?Sized> StableHash for &T {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        (**self).stable_hash(hash);
    }
}

macro_rules! tuples {
    ($(($($ty:ident $index:tt),*))*) => {
        $(
            impl<$($ty: StableHash),*> StableHash for ($($ty,)*) {
                #[inline]
                fn stable_hash(&self, hash: &mut KeyHash) {
                    $(self.$index.stable_hash(hash);)*
                }
            }
        )*
    };
}

tuples!((A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4) (A 0, B 1, C 2, D 3, E 4, F 5));

/// A type to look up a `K` by in a hash map: `K` itself, `&str` for a [`PString`], slices, arrays
/// and vectors for a [`PVec`], a slice for an array, a tuple for a struct with
/// [`Composite`](derive@crate::Composite).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = indelible::Heap::format(pool.create_attached("o", 1 << 20)?)?;
/// use indelible::collections::{PHashMap, PVec};
///
/// let sizes = heap.root_or_default::<PHashMap<PVec<u8>, u64>>("sizes")?;
/// let packet = [7, 0, 0, 1];
/// sizes.insert(&packet[..], 4); // copied only if it becomes a new key
/// *sizes.entry(&packet[..3]).or_insert(0) += 3;
/// assert_eq!(sizes[b"\x07\0\0"], 3);
/// # Ok::<(), indelible::Error>(())
/// ```
pub trait Lookup<K>: StableHash {
    /// Whether this stands for `key`, and has the same hash.
    fn matches(&self, key: &K) -> bool;
}

impl<K: StableHash + Eq> Lookup<K> for K {
    #[inline]
    fn matches(&self, key: &K) -> bool {
        self == key
    }
}

/// A type to look up a `K` by in an ordered map: those of [`Lookup`].
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// # let mut heap = pool.heap("o", 1 << 20)?;
/// use indelible::collections::{PBTreeMap, PString};
/// use indelible::{Composite, Persist};
///
/// #[derive(Persist, Composite, PartialEq, Eq, PartialOrd, Ord)]
/// #[repr(C)]
/// struct Event<'h> {
///     user: PString<'h>,
///     time: u64,
/// }
///
/// let events = heap.root_or_default::<PBTreeMap<Event, u64>>("events")?;
/// events.insert(("alice", 10_u64), 1_u64);
/// events.insert(("alice", 20_u64), 2_u64);
/// events.insert(("bob", 5_u64), 3_u64);
/// assert_eq!(events.get(&("alice", 20_u64)), Some(&2)); // nothing is allocated to look
/// assert_eq!(events.range(("alice", 0_u64)..("alice", u64::MAX)).count(), 2);
/// # Ok::<(), indelible::Error>(())
/// ```
pub trait Compare<K> {
    /// Its order relative to `key`.
    fn compare(&self, key: &K) -> Ordering;
}

impl<K: Ord> Compare<K> for K {
    #[inline]
    fn compare(&self, key: &K) -> Ordering {
        self.cmp(key)
    }
}

macro_rules! slices {
    ($([$($size:ident)?] $ty:ty),* $(,)?) => {
        $(
            impl<'h, T: Persist<'h> + StableHash + Eq $(, const $size: usize)?> Lookup<PVec<'h, T>> for $ty {
                #[inline]
                fn matches(&self, key: &PVec<'h, T>) -> bool {
                    self[..] == *key.as_slice()
                }
            }

            impl<'h, T: Persist<'h> + Ord $(, const $size: usize)?> Compare<PVec<'h, T>> for $ty {
                #[inline]
                fn compare(&self, key: &PVec<'h, T>) -> Ordering {
                    self[..].cmp(key.as_slice())
                }
            }
        )*
    };
}

slices!([] [T], [] &[T], [] Vec<T>, [] &Vec<T>, [N] [T; N], [N] &[T; N]);

impl<T: StableHash + Eq, const N: usize> Lookup<[T; N]> for [T] {
    #[inline]
    fn matches(&self, key: &[T; N]) -> bool {
        self == key
    }
}

impl<T: Ord, const N: usize> Compare<[T; N]> for [T] {
    #[inline]
    fn compare(&self, key: &[T; N]) -> Ordering {
        self.cmp(key)
    }
}

macro_rules! text {
    ($($ty:ty),*) => {
        $(
            impl<'h> Lookup<PString<'h>> for $ty {
                #[inline]
                fn matches(&self, key: &PString<'h>) -> bool {
                    self.as_bytes() == key.as_bytes()
                }
            }

            impl<'h> Compare<PString<'h>> for $ty {
                #[inline]
                fn compare(&self, key: &PString<'h>) -> Ordering {
                    self.as_bytes().cmp(key.as_bytes())
                }
            }
        )*
    };
}

text!(str, &str, String, &String);
