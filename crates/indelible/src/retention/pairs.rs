//! Containers as sequences, for migrations in steps.

use crate::collections::{PBTreeMap, PHashMap, Persist, StableHash};
use crate::error::Result;

/// A map, for [`migrate_map`](crate::Heap::migrate_map).
pub trait Pairs<'h>: Persist<'h> + Default {
    /// Type of the keys.
    type Key: Persist<'h>;
    /// Type of the values.
    type Value: Persist<'h>;

    /// Number of pairs.
    #[doc(hidden)]
    fn count(&self) -> usize;

    /// The pairs behind the first `done`, in an order that is stable while the map is unchanged.
    #[doc(hidden)]
    fn behind<'a>(&'a self, done: usize) -> impl Iterator<Item = (&'a Self::Key, &'a Self::Value)>
    where
        'h: 'a;

    /// Adds a pair. `false`: the key exists, and nothing was changed.
    #[doc(hidden)]
    fn add(&mut self, key: Self::Key, value: Self::Value) -> Result<bool>;
}

macro_rules! pairs {
    ($map:ident, $($key:path),+) => {
        impl<'h, K: Persist<'h> $(+ $key)+, V: Persist<'h>> Pairs<'h> for $map<'h, K, V> {
            type Key = K;
            type Value = V;

            fn count(&self) -> usize {
                self.len()
            }

            fn behind<'a>(&'a self, done: usize) -> impl Iterator<Item = (&'a K, &'a V)>
            where
                'h: 'a,
            {
                self.iter().skip(done)
            }

            fn add(&mut self, key: K, value: V) -> Result<bool> {
                match self.contains_key(&key) {
                    true => Ok(false),
                    false => self.try_insert(key, value).map(|_| true),
                }
            }
        }
    };
}

pairs!(PHashMap, StableHash, Eq);
pairs!(PBTreeMap, Ord);
