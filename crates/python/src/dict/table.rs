//! A dict as it lies in the heap: entries in the order in which their keys were first assigned, and
//! an index from hashes to them. crates/python/FORMAT.md describes it.
//!
//! Invariants:
//! 1. Each entry with a key is in the chain of its hash: `index` has the position of the first,
//!    `next` of the one behind.
//! 2. Entries that were removed have no key and are in no chain; the last entry is not one of them.
//!    `live` counts the others.
//! 3. A block with an array is in one entry or in `unlinked`, which holds those that Python fills,
//!    and those whose arrays are in use after their entry was replaced or removed.
//!
//! A method that fails changed nothing: memory is had before the first store.

use super::value::{New, Room, Value, extent};
use indelible::collections::{HeapRef, IntoPersist, KeyHash, PHashMap, PString, PVec};
use indelible::{Error, Persist};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::mem::replace;

pub(super) const ROOT: &str = "dict";
/// Version of the format. Version 1 was a root of another type, whose name this is.
pub(super) const VERSION: u64 = 2;
pub(super) const VERSION_1: &str = "indelible.dict";
pub(super) const KEY_MAX: usize = 65535;
/// No position.
const NONE: u32 = u32::MAX;

#[derive(Persist)]
#[repr(C)]
pub(super) struct PythonDict<'h> {
    version: u64,
    seed: u64,
    live: u64,
    entries: PVec<'h, Entry<'h>>,
    index: PHashMap<'h, u32, u32>,
    unlinked: PVec<'h, Room<'h>>,
}

#[derive(Persist)]
#[repr(C)]
pub(super) struct Entry<'h> {
    key: PString<'h>,
    hash: u32,
    next: u32,
    value: Value<'h>,
}

impl Entry<'_> {
    fn is_removed(&self) -> bool {
        matches!(self.value, Value::Removed)
    }
}

impl Default for PythonDict<'_> {
    fn default() -> Self {
        PythonDict {
            version: VERSION,
            seed: RandomState::new().build_hasher().finish(),
            live: 0,
            entries: PVec::new(),
            index: PHashMap::new(),
            unlinked: PVec::new(),
        }
    }
}

/// An assignment with all its memory.
struct Ready<'h> {
    hash: u32,
    /// Slot of the key, or a copy of the key.
    place: Result<usize, PString<'h>>,
    /// `Err`: the address of an array.
    value: Result<Value<'h>, usize>,
}

#[cold]
fn damaged(what: &str) -> ! {
    panic!("the object is damaged: {what}; go back to a copy of the object")
}

impl<'h> PythonDict<'h> {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn len(&self) -> usize {
        if self.live > self.entries.len() as u64 {
            damaged("a dict has more keys than entries");
        }
        self.live as usize
    }

    /// The largest block needed when the dict gets `more` keys.
    pub(super) fn room_for(&self, more: usize) -> usize {
        let entries = (self.entries.capacity() * 2).max(self.entries.len() + more);
        entries * (size_of::<Entry<'_>>() + 2 * size_of::<[u32; 3]>())
    }

    fn hash(&self, key: &str) -> u32 {
        let mut hash = KeyHash::new(self.seed);
        hash.bytes(key.as_bytes());
        (hash.finish() >> 32) as u32
    }

    fn entry(&self, at: u32) -> &Entry<'h> {
        self.entries.get(at as usize).unwrap_or_else(|| damaged("the index of a dict points at no entry"))
    }

    fn entry_mut(&mut self, at: u32) -> &mut Entry<'h> {
        match self.entries.get_mut(at as usize) {
            Some(entry) => entry,
            None => damaged("the index of a dict points at no entry"),
        }
    }

    fn find_hash(&self, hash: u32, key: &str) -> Option<usize> {
        let mut at = *self.index.get(&hash)?;
        // Bounded, so that a damaged chain ends.
        for _ in 0..self.entries.len() {
            let entry = self.entry(at);
            if entry.hash == hash && entry.key.as_bytes() == key.as_bytes() && !entry.is_removed() {
                return Some(at as usize);
            }
            if entry.next == NONE {
                return None;
            }
            at = entry.next;
        }
        damaged("a chain of a dict has no end")
    }

    pub(super) fn find(&self, key: &str) -> Option<usize> {
        self.find_hash(self.hash(key), key)
    }

    pub(super) fn value(&self, at: usize) -> &Value<'h> {
        &self.entry(at as u32).value
    }

    /// The first entry at or behind `at`, or before it if `back`: position, key and value.
    pub(super) fn next(&self, at: usize, back: bool) -> Option<(usize, &str, &Value<'h>)> {
        let mut at = at;
        loop {
            let entry = self.entries.get(at)?;
            if !entry.is_removed() {
                return Some((at, &entry.key, &entry.value));
            }
            at = if back { at.checked_sub(1)? } else { at + 1 };
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value<'h>)> {
        let live = self.entries.iter().filter(|entry| !entry.is_removed());
        live.map(|entry| (&*entry.key, &entry.value))
    }

    /// Addresses in the table's own blocks, beside those of keys and values.
    pub(super) fn own_memory(&self) -> impl Iterator<Item = usize> {
        let index = self.index.keys().next().map(|first| std::ptr::from_ref(first).addr());
        index.into_iter().chain([self.entries.as_ptr().addr(), self.unlinked.as_ptr().addr()])
    }

    pub(super) fn last(&self) -> Option<usize> {
        self.entries.len().checked_sub(1)
    }

    /// A new, unlinked block of `lines` for an array.
    pub(super) fn add_room(&mut self, heap: HeapRef<'h>, lines: usize) -> Result<(usize, usize), Error> {
        self.unlinked.try_reserve(1)?;
        let mut room = Room::new_in(heap);
        room.try_reserve(lines)?;
        let found = extent(&room);
        self.unlinked.try_push(room)?;
        Ok(found)
    }

    /// Frees unlinked blocks that are not in use.
    pub(super) fn purge(&mut self, in_use: impl Fn(usize) -> bool) {
        if !self.unlinked.is_empty() {
            self.unlinked.retain(|room| in_use(extent(room).0));
        }
    }

    /// Assigns all values to their keys, or none. True if there are new keys.
    pub(super) fn update(
        &mut self,
        heap: HeapRef<'h>,
        items: &[(&str, New<'_>)],
        in_use: impl Fn(usize) -> bool,
    ) -> Result<bool, Error> {
        let before = self.live;
        self.reserve(items.len())?;
        if let [(key, new)] = items {
            let ready = self.ready(heap, key, new)?;
            self.unlinked.try_reserve(1)?;
            self.put(ready, &in_use);
            return Ok(self.live != before);
        }
        let all = items.iter().map(|(key, new)| self.ready(heap, key, new)).collect::<Result<Vec<_>, _>>()?;
        // Replaced arrays: present ones, and those of repeated keys.
        self.unlinked.try_reserve(all.len())?;
        for mut ready in all {
            if let Err(key) = &ready.place
                && let Some(at) = self.find_hash(ready.hash, key)
            {
                ready.place = Ok(at);
            }
            self.put(ready, &in_use);
        }
        Ok(self.live != before)
    }

    /// Makes room for more keys. Positions change.
    fn reserve(&mut self, more: usize) -> Result<(), Error> {
        if self.entries.len() + more > self.entries.capacity() {
            let removed = self.entries.len() - self.len();
            if removed >= more && removed >= self.entries.len() / 4 {
                self.compact();
            } else {
                assert!(
                    self.entries.len() + more < NONE as usize,
                    "a dict has room for 4,294,967,294 keys: use several"
                );
                self.entries.try_reserve(more)?;
            }
        }
        self.index.try_reserve(more)
    }

    fn compact(&mut self) {
        self.entries.retain(|entry| !entry.is_removed());
        self.index.clear();
        for at in 0..self.entries.len() as u32 {
            let hash = self.entry(at).hash;
            let next = self.index.insert(hash, at).unwrap_or(NONE);
            self.entry_mut(at).next = next;
        }
    }

    /// Assigns, with room for a key and an unlinked block.
    fn put(&mut self, ready: Ready<'h>, in_use: &impl Fn(usize) -> bool) {
        let Ready { hash, place, value } = ready;
        let value = value.unwrap_or_else(|address| Value::Array(self.take_room(address)));
        match place {
            Ok(at) => {
                let old = replace(&mut self.entry_mut(at as u32).value, value);
                self.dispose(old, in_use);
            }
            Err(key) => {
                let next = self.index.insert(hash, self.entries.len() as u32).unwrap_or(NONE);
                self.entries.push(Entry { key, hash, next, value });
                self.live += 1;
            }
        }
    }

    fn take_room(&mut self, address: usize) -> Room<'h> {
        let at = (0..self.unlinked.len())
            .find(|at| self.unlinked.get(*at).is_some_and(|room| extent(room).0 == address));
        match at {
            Some(at) => self.unlinked.swap_remove(at),
            None => damaged("the block of an array is not among the unlinked ones"),
        }
    }

    /// Frees a value; keeps a block in use, for which there is room.
    fn dispose(&mut self, value: Value<'h>, in_use: &impl Fn(usize) -> bool) {
        if let Value::Array(room) = value
            && in_use(extent(&room).0)
        {
            self.unlinked.push(room);
        }
    }

    pub(super) fn remove(&mut self, at: usize, in_use: impl Fn(usize) -> bool) -> Result<(), Error> {
        self.unlinked.try_reserve(1)?;
        let Entry { hash, next, .. } = *self.entry(at as u32);
        let first = self.index.get(&hash).copied().unwrap_or(NONE);
        if first as usize != at {
            let mut before = first;
            for _ in 0..self.entries.len() {
                if self.entry(before).next as usize == at {
                    break;
                }
                before = self.entry(before).next;
            }
            if self.entry(before).next as usize != at {
                damaged("an entry of a dict is in no chain");
            }
            self.entry_mut(before).next = next;
        } else if next == NONE {
            self.index.remove(&hash);
        } else {
            self.index.insert(hash, next);
        }
        let heap = self.entries.heap();
        let entry = self.entry_mut(at as u32);
        (entry.next, entry.key) = (NONE, PString::new_in(heap));
        let value = replace(&mut entry.value, Value::Removed);
        self.live -= 1;
        while self.entries.last().is_some_and(Entry::is_removed) {
            self.entries.pop();
        }
        self.dispose(value, &in_use);
        Ok(())
    }

    /// Removes everything, and frees the memory.
    pub(super) fn clear(&mut self, in_use: impl Fn(usize) -> bool) -> Result<(), Error> {
        let used = |entry: &Entry<'_>| matches!(&entry.value, Value::Array(room) if in_use(extent(room).0));
        let keep = self.entries.iter().filter(|entry| used(entry)).count();
        self.unlinked.try_reserve(keep)?;
        self.live = 0;
        self.index.clear();
        while let Some(entry) = self.entries.pop() {
            self.dispose(entry.value, &in_use);
        }
        self.entries.shrink_to_fit();
        self.index.shrink_to_fit();
        Ok(())
    }

    /// Allocates a key and its value.
    fn ready(&self, heap: HeapRef<'h>, key: &str, new: &New<'_>) -> Result<Ready<'h>, Error> {
        let hash = self.hash(key);
        let place = match self.find_hash(hash, key) {
            Some(at) => Ok(at),
            None => Err(key.into_persist(heap)?),
        };
        let value = match (new.copy_into(heap)?, new) {
            (Some(value), _) => Ok(value),
            (None, New::Array(address)) => Err(*address),
            (None, _) => Ok(Value::None),
        };
        Ok(Ready { hash, place, value })
    }
}
