//! A hash table in one block: control bytes, then slots. Open addressing by groups of sixteen, as
//! in `SwissTable`s; a search without an empty slot in a group goes to the next.
//!
//! Invariants of [`Table`], checked when a reference is made, and kept by its methods:
//!
//! 1. If `slots` is 0, so are `len` and `left`, and `at` is 0 or the first address of the heap to
//!    allocate in.
//! 2. Otherwise `slots` is a power of two of at least 16, and `at` the address of a block in the
//!    object with room for so many, which the table owns unless the object is damaged.
//! 3. `len + left` is at most 7/8 of `slots`: a search comes to an empty slot, or was in each group
//!    once.
//!
//! Control bytes and slots are untrusted: an index is below `slots`, and keys and values are
//! checked before use.

#![allow(unsafe_code)]

use super::fields::{Field, fields};
use super::group::{EMPTY, GROUP, Group, Probe, REMOVED, tag};
use super::key::{KeyHash, Lookup, StableHash};
use super::persist::{Bounds, Persist, put};
use super::place::{
    HeapRef, bounds_at, discard, each, finally, free, name_stored, pointer, range, stored, verify,
    verify_within,
};
use super::search::Search;
use super::slots::{Iter, Slot};
use crate::error::Result;
use crate::heap::{Heap, any_explicit};
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::ptr::NonNull;

#[repr(C)]
pub(super) struct Table<'h, K: Persist<'h>, V: Persist<'h>> {
    at: u64,
    slots: u64,
    len: u64,
    left: u64,
    seed: u64,
    owns: PhantomData<(&'h Heap, K, V)>,
}

const fn load(slots: u64) -> u64 {
    slots / 8 * 7
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Table<'h, K, V> {
    pub(super) const FIELDS: &'static [Field] =
        fields!(Table<'h, K, V> { at: u64, slots: u64, len: u64, left: u64, seed: u64 });
    const ALIGN: usize = if align_of::<Slot<K, V>>() > GROUP { align_of::<Slot<K, V>>() } else { GROUP };

    pub(super) const fn new(at: u64) -> Self {
        Table { at, slots: 0, len: 0, left: 0, seed: 0, owns: PhantomData }
    }

    #[inline]
    pub(super) fn heap(&self) -> HeapRef<'h> {
        // SAFETY: our block, our heap, or our place.
        unsafe { HeapRef::of_container(self.at, self) }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) const fn capacity(&self) -> usize {
        (self.len + self.left) as usize
    }

    pub(super) const fn slots(&self) -> u64 {
        self.slots
    }

    #[inline]
    const fn offset(slots: u64) -> u64 {
        if Self::ALIGN == GROUP { slots } else { slots.next_multiple_of(Self::ALIGN as u64) }
    }

    #[inline]
    const fn size(slots: u64) -> Option<u64> {
        if slots > 1 << 60 {
            return None;
        }
        let first = Self::offset(slots);
        match slots.checked_mul(size_of::<Slot<K, V>>() as u64) {
            Some(bytes) => bytes.checked_add(first),
            None => None,
        }
    }

    #[inline]
    pub(super) fn control(&self) -> *mut u8 {
        pointer(self.at)
    }

    #[inline]
    pub(super) fn first(&self) -> *mut Slot<K, V> {
        // SAFETY: in the block (2).
        unsafe { self.control().add(Self::offset(self.slots) as usize).cast() }
    }

    #[inline]
    pub(super) fn hash<Q: StableHash + ?Sized>(&self, key: &Q) -> u64 {
        let mut hash = KeyHash::new(self.seed);
        key.stable_hash(&mut hash);
        hash.finish()
    }

    #[inline]
    pub(super) fn find<Q: Lookup<K> + ?Sized>(&self, hash: u64, key: &Q) -> Option<NonNull<Slot<K, V>>> {
        if self.len == 0 {
            return None;
        }
        // Computed before the slot is known: no load waits for it.
        let bounds = if K::ANY { Bounds::NONE } else { bounds_at(self.at as usize) };
        let probe = Probe::new(hash, self.slots);
        match self.find_in(&probe, tag(hash), key, &bounds) {
            ControlFlow::Break(found) => found,
            // Integers are compared inline: all registers stay free for the search.
            ControlFlow::Continue(()) if K::ANY => self.find_further(probe, tag(hash), key, &bounds),
            ControlFlow::Continue(()) => self.find_far(probe, tag(hash), key, &bounds),
        }
    }

    #[inline]
    fn find_in<Q: Lookup<K> + ?Sized>(
        &self,
        probe: &Probe,
        tag: u8,
        key: &Q,
        bounds: &Bounds,
    ) -> ControlFlow<Option<NonNull<Slot<K, V>>>> {
        // SAFETY: the group and its slots lie in the block (2).
        unsafe {
            let group = Group::load(self.control().add(probe.at));
            // Before comparing a key, which may be a call that keeps no vector registers.
            let (matches, last) = (group.matches(tag), group.empty().any());
            for index in matches {
                let slot = NonNull::new_unchecked(self.first().add(probe.at + index));
                let found = &raw const (*slot.as_ptr()).key;
                verify_within(found, bounds);
                if key.matches(&*found) {
                    return ControlFlow::Break(Some(slot));
                }
            }
            if last { ControlFlow::Break(None) } else { ControlFlow::Continue(()) }
        }
    }

    #[cold]
    #[inline(never)]
    fn find_far<Q: Lookup<K> + ?Sized>(
        &self,
        probe: Probe,
        tag: u8,
        key: &Q,
        bounds: &Bounds,
    ) -> Option<NonNull<Slot<K, V>>> {
        self.find_further(probe, tag, key, bounds)
    }

    #[inline]
    fn find_further<Q: Lookup<K> + ?Sized>(
        &self,
        mut probe: Probe,
        tag: u8,
        key: &Q,
        bounds: &Bounds,
    ) -> Option<NonNull<Slot<K, V>>> {
        while probe.next() {
            if let ControlFlow::Break(found) = self.find_in(&probe, tag, key, bounds) {
                return found;
            }
        }
        None
    }

    #[inline]
    pub(super) fn make_room(&mut self) -> Result<()>
    where
        K: StableHash,
    {
        if self.left > 0 {
            return Ok(());
        }
        let slots = if self.len >= load(self.slots) / 2 { self.slots * 2 } else { self.slots };
        self.move_to(slots.max(GROUP as u64))
    }

    pub(super) fn reserve(&mut self, more: usize) -> Result<()>
    where
        K: StableHash,
    {
        if more as u64 <= self.left {
            return Ok(());
        }
        self.move_to(Self::slots_for(self.len.saturating_add(more as u64)))
    }

    pub(super) fn shrink(&mut self)
    where
        K: StableHash,
    {
        let slots = Self::slots_for(self.len);
        if self.len == 0 {
            self.give_back();
        } else if slots < self.slots {
            let _ = self.move_to(slots);
        }
    }

    fn slots_for(len: u64) -> u64 {
        let least = len.saturating_add(len.div_ceil(7)).clamp(GROUP as u64, 1 << 60);
        let slots = least.next_power_of_two();
        if load(slots) < len { slots * 2 } else { slots }
    }

    #[cold]
    #[inline(never)]
    fn move_to(&mut self, slots: u64) -> Result<()>
    where
        K: StableHash,
    {
        let heap = self.heap();
        let bytes = Self::size(slots).map_or(usize::MAX, |bytes| bytes as usize);
        let block = heap.bytes(bytes, Self::ALIGN)?.as_ptr();
        let mut new = Table::<K, V> { at: block.addr() as u64, slots, ..Table::new(0) };
        // SAFETY: a new block; its slots own nothing until it is ours.
        unsafe { block.write_bytes(EMPTY, slots as usize) };
        new.seed = if self.at == 0 || self.slots == 0 { random() } else { self.seed };
        let mut moved = 0;
        for slot in self.iter() {
            // SAFETY: a slot in use of the old block, and an empty one of the new. The old block is
            // freed without a look at its contents.
            unsafe {
                verify(&raw const (*slot).key);
                let hash = new.hash(&(*slot).key);
                let target = new.place(hash);
                new.control().add(target).write(tag(hash));
                new.first().add(target).copy_from_nonoverlapping(slot, 1);
            }
            moved += 1;
        }
        // SAFETY: the new block.
        unsafe { stored(block, bytes) };
        // Damaged control bytes may give another count than `len`.
        (new.len, new.left) = (moved, load(slots).saturating_sub(moved));
        std::mem::swap(self, &mut new);
        new.len = 0;
        Ok(())
    }

    #[inline]
    fn place(&self, hash: u64) -> usize {
        let mut probe = Probe::new(hash, self.slots);
        loop {
            // SAFETY: the group lies in the block (2).
            let group = unsafe { Group::load(self.control().add(probe.at)) };
            if let Some(index) = group.free().next() {
                return probe.at + index;
            }
            assert!(probe.next(), "the object is damaged: a hash table has no free slot");
        }
    }

    #[inline]
    pub(super) fn add(&mut self, hash: u64, key: K, value: V) -> *mut Slot<K, V> {
        let index = self.place(hash);
        // SAFETY: a free slot of the block.
        unsafe {
            let control = self.control().add(index);
            self.left -= u64::from(control.read() == EMPTY).min(self.left);
            control.write(tag(hash));
            let slot = self.first().add(index);
            put(&raw mut (*slot).key, key);
            put(&raw mut (*slot).value, value);
            self.len += 1;
            if any_explicit() {
                name_stored(&[range(control, 1), range(slot, 1)]);
            }
            slot
        }
    }

    /// # Safety
    /// A slot of this table that is in use.
    pub(super) unsafe fn release(&mut self, slot: *mut Slot<K, V>) {
        // SAFETY: the caller's promise; the slot's group lies in the block (2).
        unsafe {
            let index = slot.offset_from_unsigned(self.first());
            let control = self.control();
            let group = Group::load(control.add(index / GROUP * GROUP));
            // A search ends at a group with an empty slot.
            let empty = group.empty().any();
            control.add(index).write(if empty { EMPTY } else { REMOVED });
            stored(control.add(index), 1);
            self.len = self.len.saturating_sub(1);
            self.left = (self.left + u64::from(empty)).min(load(self.slots).saturating_sub(self.len));
        }
    }

    /// # Safety
    /// A slot of this table that is in use.
    pub(super) unsafe fn take(&mut self, slot: *mut Slot<K, V>) -> (K, V) {
        // SAFETY: the caller's promise; values, moved out once.
        unsafe {
            verify(&raw const (*slot).key);
            verify(&raw const (*slot).value);
            let Slot { key, value } = slot.read();
            self.release(slot);
            (key, value)
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> Iter<K, V> {
        match self.slots {
            0 => Iter::empty(),
            // SAFETY: the block's control bytes and slots (2).
            slots => unsafe { Iter::new(self.control(), self.first(), slots as usize / GROUP) },
        }
    }

    pub(super) fn clear(&mut self) {
        if self.slots == 0 {
            return;
        }
        let (control, slots) = (self.control(), self.slots as usize);
        let drops = self.len > 0 && (std::mem::needs_drop::<K>() || std::mem::needs_drop::<V>());
        let all = if drops { self.iter() } else { Iter::empty() };
        (self.len, self.left) = (0, load(self.slots));
        let drop_all = || {
            each(all, |slot| {
                // SAFETY: in use, and dropped once, by the control bytes.
                finally(
                    || unsafe { discard(&raw mut (*slot).key) },
                    || unsafe { discard(&raw mut (*slot).value) },
                );
            });
        };
        // SAFETY: the control bytes.
        finally(drop_all, || unsafe {
            control.write_bytes(EMPTY, slots);
            stored(control, slots);
        });
    }

    fn give_back(&mut self) {
        self.clear();
        let base = self.heap().base();
        if self.slots > 0 {
            // SAFETY: the block is ours, and empty.
            unsafe { free(self.at) };
        }
        (self.at, self.slots, self.left) = (base, 0, 0);
    }
}

pub(super) fn random() -> u64 {
    std::hash::RandomState::new().hash_one(0)
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Drop for Table<'h, K, V> {
    fn drop(&mut self) {
        if self.slots == 0 {
            return;
        }
        let (block, len) = (self.at, self.len);
        let drop_all = || {
            if len > 0 {
                self.clear();
            }
        };
        // SAFETY: the block is ours.
        finally(drop_all, || unsafe { free(block) });
    }
}

// SAFETY: pointer and numbers are checked (1).
unsafe impl<'h, K: Persist<'h>, V: Persist<'h>> Persist<'h> for Table<'h, K, V> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are integers.
        let [block, slots, len, left, _] = unsafe { at.cast::<[u64; 5]>().read() };
        if slots == 0 {
            return len == 0 && left == 0 && (block == 0 || block == bounds.base as u64);
        }
        let Some(bytes) = Self::size(slots) else { return false };
        slots.is_power_of_two()
            && slots >= GROUP as u64
            && len.checked_add(left).is_some_and(|most| most <= load(slots))
            && bounds.holds(block, bytes, 1, Self::ALIGN)
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: a value, whose block lies in the object, unchanged while borrowed.
        let table = unsafe { &*at };
        for slot in table.iter().take(search.left()) {
            // SAFETY: a slot in use.
            unsafe {
                K::search(&raw const (*slot).key, bounds, search)?;
                V::search(&raw const (*slot).value, bounds, search)?;
            }
        }
        Ok(())
    }

    fn describe(layout: &mut super::layout::Layout) {
        K::describe(layout);
        V::describe(layout);
    }

    fn type_name(out: &mut String) {
        K::type_name(out);
        out.push_str(", ");
        V::type_name(out);
    }
}
