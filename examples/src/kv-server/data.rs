//! The persistent data: keys, values, and times of expiry.

use indelible::collections::{HeapRef, PBTreeSet, PHashMap, PVec, PVecDeque};
use indelible::{Composite, Persist, Result, StableHash};

pub(crate) const ROOT: &str = "database";

pub(crate) type Bytes<'h> = PVec<'h, u8>;
pub(crate) type Hash<'h> = PHashMap<'h, Bytes<'h>, Bytes<'h>>;
pub(crate) type List<'h> = PVecDeque<'h, Bytes<'h>>;

#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Database<'h> {
    pub(crate) values: Keys<'h, Value<'h>>,
    pub(crate) cache: Keys<'h, Cached<'h>>,
    /// The last unique number of a cached value.
    pub(crate) unique: u64,
}

#[derive(Persist)]
#[repr(C)]
pub(crate) struct Keys<'h, V: Persist<'h>> {
    items: PHashMap<'h, Bytes<'h>, Item<V>>,
    ends: PBTreeSet<'h, End<'h>>,
}

#[derive(Persist)]
#[repr(C)]
pub(crate) struct Item<V> {
    /// In milliseconds since 1970; 0: never.
    pub(crate) expires: u64,
    pub(crate) value: V,
}

#[derive(Persist, Composite, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
struct End<'h> {
    expires: u64,
    key: Bytes<'h>,
}

#[derive(Persist)]
#[repr(C, u8)]
pub(crate) enum Value<'h> {
    Text(Bytes<'h>),
    /// A text that INCR made: the number's digits.
    Number(i64),
    Hash(Hash<'h>),
    Sorted(Sorted<'h>),
    List(List<'h>),
}

#[derive(Persist)]
#[repr(C)]
pub(crate) struct Cached<'h> {
    /// The client's number.
    pub(crate) flags: u64,
    /// Changes with each store.
    pub(crate) unique: u64,
    pub(crate) bytes: Bytes<'h>,
}

#[derive(Persist, Default)]
#[repr(C)]
pub(crate) struct Sorted<'h> {
    /// Scores as `ordered` numbers.
    pub(crate) scores: PHashMap<'h, Bytes<'h>, u64>,
    pub(crate) order: PBTreeSet<'h, Rank<'h>>,
}

#[derive(Persist, Composite, StableHash, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Rank<'h> {
    pub(crate) score: u64,
    pub(crate) member: Bytes<'h>,
}

pub(crate) fn ordered(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

pub(crate) fn score(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

impl Database<'_> {
    pub(crate) fn next_end(&self) -> Option<u64> {
        self.values.next_end().into_iter().chain(self.cache.next_end()).min()
    }
}

impl<'h, V: Persist<'h>> Default for Keys<'h, V> {
    fn default() -> Self {
        Keys { items: PHashMap::new(), ends: PBTreeSet::new() }
    }
}

impl<V> Item<V> {
    fn is_over(&self, now: u64) -> bool {
        self.expires != 0 && self.expires <= now
    }
}

impl<'h, V: Persist<'h>> Keys<'h, V> {
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.items.len(), self.ends.len())
    }

    /// `None` for an expired key.
    pub(crate) fn get(&self, key: &[u8], now: u64) -> Option<&Item<V>> {
        self.items.get(key).filter(|item| !item.is_over(now))
    }

    pub(crate) fn is_there(&mut self, key: &[u8], now: u64) -> bool {
        let over = self.items.get(key).map(|item| item.is_over(now));
        if over == Some(true) {
            self.remove(key);
        }
        over == Some(false)
    }

    /// Changes an unexpired key's value. Unlike a mutable reference, a closure makes no later cut
    /// examine the value again.
    pub(crate) fn update<R>(&mut self, key: &[u8], now: u64, change: impl FnOnce(&mut V) -> R) -> Option<R> {
        self.update_item(key, now, |item| change(&mut item.value))
    }

    fn update_item<R>(&mut self, key: &[u8], now: u64, change: impl FnOnce(&mut Item<V>) -> R) -> Option<R> {
        let changed = self.items.update(key, |item| (!item.is_over(now)).then(|| change(item)))?;
        if changed.is_none() {
            self.remove(key);
        }
        changed
    }

    /// As `update`, and sets the expiry unless `change` fails.
    pub(crate) fn replace<E: From<indelible::Error>>(
        &mut self,
        key: &[u8],
        now: u64,
        expires: Option<u64>,
        change: impl FnOnce(&mut V) -> std::result::Result<(), E>,
    ) -> Option<std::result::Result<(), E>> {
        let replaced = self.update_item(key, now, |item| change(&mut item.value).map(|()| item.expires))?;
        Some(replaced.and_then(|before| match expires {
            Some(expires) if expires != before => Ok(self.expire(key, expires)?),
            _ => Ok(()),
        }))
    }

    pub(crate) fn insert(&mut self, key: &[u8], value: V, expires: u64) -> Result<()> {
        let before = self.items.get(key).map_or(0, |item| item.expires);
        self.index(key, before, expires)?;
        self.items.try_insert(key, Item { expires, value })?;
        Ok(())
    }

    pub(crate) fn expire(&mut self, key: &[u8], expires: u64) -> Result<()> {
        let Some(before) = self.items.get(key).map(|item| item.expires) else { return Ok(()) };
        if before != expires {
            self.index(key, before, expires)?;
            self.items.update(key, |item| item.expires = expires);
        }
        Ok(())
    }

    fn index(&mut self, key: &[u8], before: u64, after: u64) -> Result<()> {
        if before == after {
            return Ok(());
        }
        if after != 0 {
            self.ends.try_insert((after, key))?;
        }
        if before != 0 {
            self.ends.remove(&(before, key));
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Item<V>> {
        let item = self.items.remove(key)?;
        if item.expires != 0 {
            self.ends.remove(&(item.expires, key));
        }
        Some(item)
    }

    /// Moves a key's value and expiry to another key. Without room nothing changes.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8], heap: HeapRef<'h>) -> Result<()> {
        let Some(expires) = self.items.get(from).map(|item| item.expires) else { return Ok(()) };
        let name = Bytes::try_from_slice_in(to, heap)?;
        self.items.try_reserve(1)?;
        let before = self.items.get(to).map_or(0, |item| item.expires);
        self.index(to, before, expires)?;
        if let Some(item) = self.remove(from) {
            self.items.try_insert(name, item)?;
        }
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
    }

    pub(crate) fn purge(&mut self, now: u64, most: usize) -> usize {
        let mut removed = 0;
        while removed < most && self.next_end().is_some_and(|end| end <= now) {
            let Some(end) = self.ends.pop_first() else { break };
            if self.items.get(&*end.key).is_some_and(|item| item.expires == end.expires) {
                self.items.remove(&*end.key);
            }
            removed += 1;
        }
        removed
    }

    fn next_end(&self) -> Option<u64> {
        self.ends.first().map(|end| end.expires)
    }

    pub(crate) fn scan(&self, cursor: u64, count: usize, now: u64, mut each: impl FnMut(&[u8], &V)) -> u64 {
        self.items.scan(cursor, count, |key, item| {
            if !item.is_over(now) {
                each(key, &item.value);
            }
        })
    }
}

/// Sets a text's bytes, in place if they fit: there are no references to them.
///
/// # Errors
/// The heap is full; nothing changed.
pub(crate) fn assign(text: &mut Bytes<'_>, bytes: &[u8]) -> Result<()> {
    text.try_reserve(bytes.len().saturating_sub(text.len()))?;
    text.clear();
    text.try_extend_from_slice(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ordered_as_their_scores() {
        let scores = [f64::NEG_INFINITY, -1e300, -2.5, -1e-300, 0.0, 1e-300, 1.0, 1e300, f64::INFINITY];
        for pair in scores.windows(2) {
            assert!(ordered(pair[0]) < ordered(pair[1]), "{pair:?}");
        }
        assert!(scores.iter().all(|value| score(ordered(*value)) == *value));
        assert_eq!(ordered(-0.0), ordered(0.0));
    }
}
