//! Walks over a hash table in steps, between which it changes.
//!
//! A key's home is the group at which its search begins. Homes are visited in the order of their
//! reversed bits, and the cursor is a number of 64 reversed bits: *every key in the table whose
//! reversed bits are below the cursor was given out, if it has been there since the walk began.*
//! After growth, homes may begin in the middle of an old one, after shrinking before the cursor:
//! such a home is given out again as a whole.
//!
//! A home's keys lie in the groups that its search visits, up to the first with a never used slot:
//! removals keep that (`Table::release`).

#![allow(unsafe_code)]

use super::group::{GROUP, Group, Probe};
use super::hash_map::PHashMap;
use super::hash_set::PHashSet;
use super::key::StableHash;
use super::persist::Persist;
use super::place::{bounds_at, verify_within};
use super::slots::Slot;
use super::table::Table;

const fn home(cursor: u64, groups: u64) -> (u64, u64) {
    let behind = u64::BITS - groups.trailing_zeros();
    match cursor.checked_shr(behind) {
        Some(first) => (first.reverse_bits() >> behind, (first + 1) << behind),
        None => (0, 0),
    }
}

impl<'h, K: Persist<'h> + StableHash, V: Persist<'h>> Table<'h, K, V> {
    fn scan_home(&self, cursor: u64, mut each: impl FnMut(*mut Slot<K, V>)) -> u64 {
        let (home, next) = home(cursor, self.slots() / GROUP as u64);
        let (begin, bounds) = (home * GROUP as u64, bounds_at(self.control().addr()));
        let mut probe = Probe::new(begin, self.slots());
        loop {
            // SAFETY: the group and its slots lie in the block.
            unsafe {
                let group = Group::load(self.control().add(probe.at));
                for index in group.full() {
                    let slot = self.first().add(probe.at + index);
                    verify_within(&raw const (*slot).key, &bounds);
                    if Probe::new(self.hash(&(*slot).key), self.slots()).at as u64 == begin {
                        each(slot);
                    }
                }
                if group.empty().any() || !probe.next() {
                    return next;
                }
            }
        }
    }
}

impl<'h, K: Persist<'h> + StableHash, V: Persist<'h>> PHashMap<'h, K, V> {
    /// A step of a walk over a map that may change between steps: `each` gets about `count` keys
    /// with values; returns the next cursor. 0 begins and ends the walk. A key present throughout
    /// is met at least once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let pool = indelible::Pool::format(dir.path().join("p"), 16 << 20)?;
    /// # let mut heap = pool.heap("o", 1 << 20)?;
    /// use indelible::collections::PHashMap;
    ///
    /// let map = heap.root_or_default::<PHashMap<u64, u64>>("map")?;
    /// map.extend((0..1000_u64).map(|key| (key, 0_u64)));
    /// let (mut cursor, mut met) = (0, 0);
    /// loop {
    ///     cursor = map.scan(cursor, 10, |key, _| met += u64::from(*key < 1000));
    ///     if cursor == 0 {
    ///         break;
    ///     }
    ///     map.insert(cursor, cursor); // the map grows beside the walk
    /// }
    /// assert_eq!(met, 1000);
    /// # Ok::<(), indelible::Error>(())
    /// ```
    #[must_use = "the cursor with which the walk goes on"]
    pub fn scan(&self, cursor: u64, count: usize, mut each: impl FnMut(&K, &V)) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let bounds = bounds_at(self.table.control().addr());
        let (mut cursor, mut met) = (cursor, 0);
        // Bounds calls on an empty table.
        for _ in 0..count.max(1) {
            cursor = self.table.scan_home(cursor, |slot| {
                met += 1;
                // SAFETY: a slot in use of the borrowed table; the key was checked.
                unsafe {
                    verify_within(&raw const (*slot).value, &bounds);
                    each(&(*slot).key, &(*slot).value);
                }
            });
            if cursor == 0 || met >= count {
                break;
            }
        }
        cursor
    }
}

impl<'h, T: Persist<'h> + StableHash> PHashSet<'h, T> {
    /// A step of a walk over a changing set: see [`PHashMap::scan`].
    #[must_use = "the cursor with which the walk goes on"]
    pub fn scan(&self, cursor: u64, count: usize, mut each: impl FnMut(&T)) -> u64 {
        self.map.scan(cursor, count, |value, ()| each(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_enclose_the_hashes_of_their_home() {
        let mut random = indelible_testing::Seeded::new(1);
        for bits in 0..12 {
            let (groups, mut cursor, mut met) = (1_u64 << bits, 0, Vec::new());
            loop {
                let (home, next) = home(cursor, groups);
                met.push(home);
                for _ in 0..20 {
                    let inside = random.u64(cursor..=next.wrapping_sub(1));
                    let hash = inside.reverse_bits() << 4 | random.u64(..GROUP as u64);
                    assert_eq!(Probe::new(hash, groups * GROUP as u64).at as u64, home * GROUP as u64);
                    assert_eq!(super::home(inside, groups), (home, next), "a cursor of another size");
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
            met.sort_unstable();
            assert!(met.into_iter().eq(0..groups));
        }
    }
}
