//! Address-free hash maps for position-independent objects: open addressing, slot by slot. A
//! removed slot stays on probe paths until the table is rebuilt.

use super::{At, Space};
use crate::collections::{KeyHash, StableHash};
use crate::error::Result;
use crate::far::Far;
use crate::plain::Plain;
use indelible_derive::{Persist, Plain};
use std::hash::{BuildHasher, Hasher, RandomState};

const EMPTY: u64 = 0;
const FULL: u64 = 1;
const REMOVED: u64 = 2;
const FIRST: usize = 8;

/// A hash map of plain keys and values in a block of its object, without addresses, as a
/// [`FarVec`](crate::FarVec).
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
/// use indelible::{CreateOptions, FarMap, Space};
///
/// pool.create_with("ages", &CreateOptions::new(1 << 20).position_independent(true))?;
/// let mut space = Space::new();
/// let id = space.attach(&pool, "ages")?;
/// space.root_or_insert(&id, "ages", FarMap::<u64, u64>::new())?;
/// let ages = space.root::<FarMap<u64, u64>>(&id, "ages")?.here();
/// assert_eq!(space.map_insert(&id, ages, 7, 30)?, None);
/// assert_eq!(space.map_insert(&id, ages, 7, 31)?, Some(30));
/// let map = space.get(&id, ages)?;
/// assert_eq!((map.len(), *map.find(&7)?.unwrap()), (1, 31));
/// assert!(map.find(&8)?.is_none());
/// # Ok::<(), indelible::Error>(())
/// ```
#[derive(Plain, Persist)]
#[repr(C)]
pub struct FarMap<K, V> {
    #[persist(target)]
    slots: Far<FarPlace<K, V>>,
    room: u64,
    len: u64,
    used: u64,
    seed: u64,
}

/// A place for a key.
#[doc(hidden)]
#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
pub struct FarPlace<K, V> {
    state: u64,
    key: K,
    value: V,
}

impl<K, V> FarMap<K, V> {
    /// Empty, without a block.
    #[must_use]
    pub fn new() -> Self {
        let seed = RandomState::new().build_hasher().finish();
        FarMap { slots: Far::null(), room: 0, len: 0, used: 0, seed }
    }

    /// Number of keys.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<K, V> Default for FarMap<K, V> {
    fn default() -> Self {
        FarMap::new()
    }
}

impl<K, V> Clone for FarMap<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for FarMap<K, V> {}

impl<K, V> std::fmt::Debug for FarMap<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FarMap({} keys at {:?})", self.len, self.slots)
    }
}

fn place<K: StableHash + PartialEq, V>(
    slots: &[FarPlace<K, V>],
    seed: u64,
    key: &K,
) -> (Option<usize>, Option<usize>) {
    let mut hash = KeyHash::new(seed);
    key.stable_hash(&mut hash);
    let first = hash.finish().checked_rem(slots.len() as u64).unwrap_or(0) as usize;
    let mut free = None;
    for index in (first..slots.len()).chain(0..first) {
        match slots[index].state {
            EMPTY => return (None, free.or(Some(index))),
            FULL if slots[index].key == *key => return (Some(index), free),
            FULL => {}
            _ => free = free.or(Some(index)),
        }
    }
    (None, free)
}

/// One slot: storing to all would mark the whole table.
fn slot<K, V>(map: &FarMap<K, V>, index: usize) -> Far<FarPlace<K, V>> {
    map.slots.nth(index).unwrap_or_default()
}

impl<'s, K: Plain, V: Plain> At<'s, FarMap<K, V>> {
    fn slots(&self) -> Result<&'s [FarPlace<K, V>]> {
        self.follow(self.slots)?.map_or(Ok(&[]), |first| first.slice(self.room as usize))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Dangling`: the table lies outside the object, which is damaged.
    pub fn find(&self, key: &K) -> Result<Option<At<'s, V>>>
    where
        K: StableHash + PartialEq,
    {
        let slots = self.slots()?;
        let (found, _) = place(slots, self.seed, key);
        Ok(found.map(|index| self.beside(&slots[index].value)))
    }

    /// All keys with their values, unordered.
    ///
    /// # Errors
    /// As for [`find`](At::find).
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'s K, At<'s, V>)> + use<'s, K, V>> {
        let (map, slots) = (*self, self.slots()?);
        let full = slots.iter().filter(|slot| slot.state == FULL);
        Ok(full.map(move |slot| (&slot.key, map.beside(&slot.value))))
    }
}

impl Space {
    /// Inserts a value under a key; returns the former one.
    ///
    /// # Errors
    /// As for [`get_mut`](Space::get_mut) and [`create`](Space::create): the map is unchanged.
    pub fn map_insert<K, V>(
        &mut self,
        home: &[u8; 16],
        map: Far<FarMap<K, V>>,
        key: K,
        value: V,
    ) -> Result<Option<V>>
    where
        K: Plain + Copy + StableHash + PartialEq,
        V: Plain + Copy,
    {
        let (owner, mut head) = self.head(home, map)?;
        let roomy = head.used.saturating_add(1).saturating_mul(4) <= head.room.saturating_mul(3);
        let mut places = (None, None);
        if head.room > 0 {
            self.expect_block(&owner, head.slots, head.room as usize)?;
            places = place(self.slots_of(&owner, &head)?, head.seed, &key);
        }
        if let (Some(index), _) = places {
            let slot = self.get_mut(&owner, slot(&head, index))?;
            return Ok(Some(std::mem::replace(&mut slot.value, value)));
        }
        let former = head.slots;
        let index = match places.1 {
            Some(index) if roomy => index,
            _ => {
                head = self.larger(&owner, &head)?;
                let free = place(self.slots_of(&owner, &head)?, head.seed, &key).1;
                free.unwrap_or(0)
            }
        };
        let slot = self.get_mut(&owner, slot(&head, index))?;
        let was_empty = slot.state == EMPTY;
        *slot = FarPlace { state: FULL, key, value };
        (head.len, head.used) = (head.len.saturating_add(1), head.used.saturating_add(was_empty.into()));
        let moved = former != head.slots;
        *self.get_mut(home, map)? = head;
        if moved && !former.is_null() {
            self.free(&owner, former)?;
        }
        Ok(None)
    }

    /// Removes a key; returns its value.
    ///
    /// # Errors
    /// As for [`get_mut`](Space::get_mut).
    pub fn map_remove<K, V>(&mut self, home: &[u8; 16], map: Far<FarMap<K, V>>, key: &K) -> Result<Option<V>>
    where
        K: Plain + Copy + StableHash + PartialEq,
        V: Plain + Copy,
    {
        let (owner, head) = self.head(home, map)?;
        if head.room == 0 {
            return Ok(None);
        }
        self.expect_block(&owner, head.slots, head.room as usize)?;
        let (Some(index), _) = place(self.slots_of(&owner, &head)?, head.seed, key) else { return Ok(None) };
        let slot = self.get_mut(&owner, slot(&head, index))?;
        slot.state = REMOVED;
        let value = slot.value;
        self.get_mut(home, map)?.len = head.len.saturating_sub(1);
        Ok(Some(value))
    }

    fn slots_of<K: Plain, V: Plain>(
        &self,
        owner: &[u8; 16],
        head: &FarMap<K, V>,
    ) -> Result<&[FarPlace<K, V>]> {
        self.get(owner, head.slots)?.slice(head.room as usize)
    }

    fn larger<K, V>(&mut self, owner: &[u8; 16], head: &FarMap<K, V>) -> Result<FarMap<K, V>>
    where
        K: Plain + Copy + StableHash + PartialEq,
        V: Plain + Copy,
    {
        let mut full = Vec::new();
        if head.room > 0 {
            full.extend(self.slots_of(owner, head)?.iter().filter(|slot| slot.state == FULL).copied());
        }
        let room = (2 * (full.len() + 1)).next_power_of_two().max(FIRST);
        let slots = self.create_zeroed::<FarPlace<K, V>>(owner, room)?;
        let table = self.slice_mut(owner, slots, room)?;
        for slot in &full {
            if let (None, Some(index)) = place(table, head.seed, &slot.key) {
                table[index] = *slot;
            }
        }
        let used = full.len() as u64;
        Ok(FarMap { slots, room: room as u64, used, len: used, seed: head.seed })
    }
}
