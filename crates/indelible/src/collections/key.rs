//! Keys: hashes that stay the same in every build, and lookup by types other than the key's own.
//!
//! std's `Hash` may feed a hasher other bytes in the next version of the language, and a map in an object
//! outlives this one. FORMAT.md has the function.

use super::boxed::PBox;
use super::persist::Persist;
use super::string::PString;
use super::vec::PVec;
use indelible_store::format::checksum;
use std::cmp::Ordering;

/// A hash under way.
#[derive(Clone, Copy, Debug)]
pub struct KeyHash(u64);

impl KeyHash {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Begins with the seed of a map.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64) -> KeyHash {
        KeyHash(seed)
    }

    /// Adds a number: the halves of the 128-bit product, folded.
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

/// A type that can be the key of a hash map: its hash never changes. Derive it for structs, and for enums
/// with an integer as `repr`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no hash that stays the same in every build",
    label = "not `StableHash`",
    note = "integers, bool, char, strings, arrays and vectors of these have; derive it for your own types with #[derive(StableHash)]"
)]
pub trait StableHash {
    /// Adds the value to a hash. Equal values add the same.
    fn stable_hash(&self, hash: &mut KeyHash);
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

number!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, bool, char);

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
    fn stable_hash(&self, hash: &mut KeyHash) {
        hash.number(self.len() as u64);
        self.iter().for_each(|element| element.stable_hash(hash));
    }
}

impl<T: StableHash, const N: usize> StableHash for [T; N] {
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

impl<T: StableHash + ?Sized> StableHash for &T {
    #[inline]
    fn stable_hash(&self, hash: &mut KeyHash) {
        (**self).stable_hash(hash);
    }
}

/// A type by which a `K` can be looked up in a hash map: `K` itself, `&str` for a [`PString`], a slice for a
/// [`PVec`].
pub trait Lookup<K>: StableHash {
    /// Whether this stands for `key`, whose hash is the same then.
    fn matches(&self, key: &K) -> bool;
}

impl<K: StableHash + Eq> Lookup<K> for K {
    #[inline]
    fn matches(&self, key: &K) -> bool {
        self == key
    }
}

/// A type by which a `K` can be looked up in an ordered map: `K` itself, `&str` for a [`PString`], a slice
/// for a [`PVec`].
pub trait Compare<K> {
    /// How this stands to `key`.
    fn compare(&self, key: &K) -> Ordering;
}

impl<K: Ord> Compare<K> for K {
    #[inline]
    fn compare(&self, key: &K) -> Ordering {
        self.cmp(key)
    }
}

impl<'h, T: Persist<'h> + StableHash + Eq> Lookup<PVec<'h, T>> for [T] {
    #[inline]
    fn matches(&self, key: &PVec<'h, T>) -> bool {
        self == key.as_slice()
    }
}

impl<'h, T: Persist<'h> + Ord> Compare<PVec<'h, T>> for [T] {
    #[inline]
    fn compare(&self, key: &PVec<'h, T>) -> Ordering {
        self.cmp(key.as_slice())
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
