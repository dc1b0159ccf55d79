//! Nodes of an ordered map: up to fifteen keys with values, and in inner nodes sixteen children.
//!
//! Invariants of [`Node`], which `open` verifies and the methods keep:
//!
//! 1. It points at a node of its level in the object, with room for all keys, values and children.
//! 2. It has at most [`KEYS`] keys; the first so many places hold keys and values, whose bytes are
//!    checked at each access.

#![allow(unsafe_code)]

use super::fields::{Field, fields};
use super::key::Compare;
use super::persist::{Bounds, Persist, put};
use super::place::{
    HeapRef, damaged, discard, each, finally, name_stored, pointer, range, stored, verify, verify_within,
};
use crate::error::Result;
use crate::heap::any_explicit;
use crate::sys::flush::{LINE, fetch};
use std::cmp::Ordering;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Range;
use std::ptr;

pub(super) use crate::types::{KEYS, LEAST, LEVELS};

const FETCHED: usize = 512;

#[repr(C)]
struct Leaf<K, V> {
    len: u16,
    /// 0: a leaf.
    level: u16,
    reserved: u32,
    keys: [MaybeUninit<K>; KEYS],
    values: [MaybeUninit<V>; KEYS],
}

#[repr(C)]
struct Inner<K, V> {
    node: Leaf<K, V>,
    children: [u64; KEYS + 1],
}

pub(super) struct Node<K, V>(*mut Leaf<K, V>);

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Node<K, V> {}

impl<K, V> PartialEq for Node<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K, V> Node<K, V> {
    pub(super) const LEAF: &'static [Field] = fields!(Leaf<K, V> {
        len: u16,
        level: u16,
        reserved: u32,
        keys: [K; KEYS],
        values: [V; KEYS],
    });
    pub(super) const INNER: &'static [Field] =
        fields!(Inner<K, V> { node: Leaf<K, V>, children: [u64; KEYS + 1] });

    pub(super) const NONE: Node<K, V> = Node(ptr::null_mut());

    pub(super) const fn size(level: usize) -> usize {
        if level == 0 { size_of::<Leaf<K, V>>() } else { size_of::<Inner<K, V>>() }
    }

    const ALIGN: usize = align_of::<Inner<K, V>>();

    pub(super) fn fits(address: u64, level: usize, bounds: &Bounds) -> bool {
        bounds.holds(address, 1, Self::size(level), Self::ALIGN)
    }

    #[inline]
    pub(super) fn try_open(address: u64, level: usize, bounds: &Bounds) -> Option<Node<K, V>> {
        if !Self::fits(address, level, bounds) {
            return None;
        }
        let node = Node(pointer::<Leaf<K, V>>(address));
        // SAFETY: in the object, aligned; any bits are integers.
        let (len, found) = unsafe { ((*node.0).len, (*node.0).level) };
        (len >= 1 && usize::from(len) <= KEYS && usize::from(found) == level).then_some(node)
    }

    #[inline]
    pub(super) fn open_to_search(address: u64, level: usize, bounds: &Bounds) -> Node<K, V> {
        if level == 0 {
            fetch(
                pointer::<u8>(address.wrapping_add(LINE as u64)),
                Self::size(0).min(FETCHED).saturating_sub(LINE),
            );
        }
        Self::open(address, level, bounds)
    }

    #[inline]
    pub(super) fn open(address: u64, level: usize, bounds: &Bounds) -> Node<K, V> {
        match Self::try_open(address, level, bounds) {
            Some(node) => node,
            None => damaged(address as usize, "a node of an ordered map"),
        }
    }

    /// The head is marked: without room for the next node, it is freed as it is.
    pub(super) fn new(level: usize, heap: HeapRef<'_>) -> Result<Node<K, V>> {
        let node = heap.bytes(Self::size(level), Self::ALIGN)?.cast::<Leaf<K, V>>().as_ptr();
        // SAFETY: a new block, large enough.
        unsafe {
            (&raw mut (*node).len).write(0);
            (&raw mut (*node).level).write(level as u16);
            (&raw mut (*node).reserved).write(0);
            stored(node.cast::<u64>(), 1);
        }
        Ok(Node(node))
    }

    #[inline]
    fn stored(self, places: Range<usize>) {
        if any_explicit() {
            self.name(places);
        }
    }

    #[cold]
    #[inline(never)]
    fn name(self, places: Range<usize>) {
        let (first, count) = (places.start.min(KEYS - 1), places.len());
        let head = range(self.0.cast::<u64>(), 1);
        let children = if self.level() > 0 { range(self.child_place(first + 1), count) } else { 0..0 };
        let all = [head, range(self.key(first), count), range(self.value(first), count), children];
        // SAFETY: in the node (1).
        unsafe { name_stored(&all[..if self.level() > 0 { 4 } else { 3 }]) };
    }

    #[inline]
    pub(super) fn address(self) -> u64 {
        self.0.addr() as u64
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        // SAFETY: a node (1).
        unsafe { usize::from((*self.0).len) }
    }

    #[inline]
    fn set_len(self, len: usize) {
        debug_assert!(len <= KEYS);
        // SAFETY: a node (1).
        unsafe { (*self.0).len = len as u16 }
    }

    #[inline]
    pub(super) fn level(self) -> usize {
        // SAFETY: a node (1).
        unsafe { usize::from((*self.0).level) }
    }

    #[inline]
    pub(super) fn key(self, index: usize) -> *mut K {
        assert!(index < KEYS);
        // SAFETY: in the node (1).
        unsafe { self.0.byte_add(offset_of!(Leaf<K, V>, keys)).cast::<K>().add(index) }
    }

    #[inline]
    pub(super) fn value(self, index: usize) -> *mut V {
        assert!(index < KEYS);
        // SAFETY: in the node (1).
        unsafe { self.0.byte_add(offset_of!(Leaf<K, V>, values)).cast::<V>().add(index) }
    }

    #[inline]
    fn child_place(self, index: usize) -> *mut u64 {
        assert!(index <= KEYS && self.level() > 0);
        // SAFETY: in the node, which is an inner one (1).
        unsafe { self.0.byte_add(offset_of!(Inner<K, V>, children)).cast::<u64>().add(index) }
    }

    #[inline]
    pub(super) fn child(self, index: usize) -> u64 {
        // SAFETY: any bits are an integer.
        unsafe { self.child_place(index).read() }
    }

    pub(super) fn set_child(self, index: usize, child: u64) {
        // SAFETY: in the node.
        unsafe {
            self.child_place(index).write(child);
            stored(self.child_place(index), 1);
        }
    }

    /// Moves children, too; marks nothing.
    fn shift(self, from: usize, to: Node<K, V>, at: usize, count: usize) {
        if count == 0 {
            return;
        }
        assert!(from + count <= KEYS && at + count <= KEYS);
        // SAFETY: within both nodes (1); the old places are not used any more.
        unsafe {
            ptr::copy(self.key(from), to.key(at), count);
            ptr::copy(self.value(from), to.value(at), count);
            if self.level() > 0 {
                ptr::copy(self.child_place(from + 1), to.child_place(at + 1), count);
            }
        }
    }

    pub(super) fn insert<'h>(self, index: usize, key: K, value: V, child: u64)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let len = self.len();
        assert!(index <= len && len < KEYS);
        self.shift(index, self, index + 1, len - index);
        // SAFETY: a place that is free now.
        unsafe {
            put(self.key(index), key);
            put(self.value(index), value);
        }
        if self.level() > 0 {
            // SAFETY: in the node.
            unsafe { self.child_place(index + 1).write(child) };
        }
        self.set_len(len + 1);
        self.stored(index..len + 1);
    }

    pub(super) fn remove<'h>(self, index: usize) -> (K, V)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let len = self.len();
        assert!(index < len);
        // SAFETY: values (2), checked; moved out once.
        let pair = unsafe {
            verify(self.key(index));
            verify(self.value(index));
            (self.key(index).read(), self.value(index).read())
        };
        self.shift(index + 1, self, index, len - index - 1);
        self.set_len(len - 1);
        self.stored(index..len - 1);
        pair
    }

    pub(super) fn replace<'h>(self, index: usize, key: K, value: V) -> (K, V)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        assert!(index < self.len());
        // SAFETY: values (2), checked.
        unsafe {
            verify(self.key(index));
            verify(self.value(index));
            let pair = (self.key(index).read(), self.value(index).read());
            put(self.key(index), key);
            put(self.value(index), value);
            self.stored(index..index + 1);
            pair
        }
    }

    pub(super) fn split<'h>(self, middle: usize, right: Node<K, V>) -> (K, V)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let len = self.len();
        assert!(middle < len && right.len() == 0);
        // SAFETY: values (2); moved out once.
        let pair = unsafe {
            verify(self.key(middle));
            verify(self.value(middle));
            (self.key(middle).read(), self.value(middle).read())
        };
        if self.level() > 0 {
            right.set_child(0, self.child(middle + 1));
        }
        self.shift(middle + 1, right, 0, len - middle - 1);
        right.set_len(len - middle - 1);
        right.stored(0..len - middle - 1);
        self.set_len(middle);
        self.stored(0..0);
        pair
    }

    pub(super) fn join<'h>(self, key: K, value: V, right: Node<K, V>)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let (len, more) = (self.len(), right.len());
        assert!(len + 1 + more <= KEYS);
        let first = if self.level() > 0 { right.child(0) } else { 0 };
        self.insert(len, key, value, first);
        right.shift(0, self, len + 1, more);
        self.set_len(len + 1 + more);
        self.stored(len + 1..len + 1 + more);
        right.set_len(0);
        right.stored(0..0);
    }

    pub(super) fn push_front<'h>(self, key: K, value: V, child: u64)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let first = if self.level() > 0 { self.child(0) } else { 0 };
        self.insert(0, key, value, first);
        if self.level() > 0 {
            self.set_child(0, child);
        }
    }

    pub(super) fn pop_front<'h>(self) -> (K, V, u64)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let first = if self.level() > 0 { self.child(0) } else { 0 };
        if self.level() > 0 {
            self.set_child(0, self.child(1));
        }
        let (key, value) = self.remove(0);
        (key, value, first)
    }

    pub(super) fn discard<'h>(self)
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        each(0..self.len(), |index| {
            // SAFETY: values (2), dropped once.
            finally(|| unsafe { discard(self.key(index)) }, || unsafe { discard(self.value(index)) });
        });
    }

    #[inline]
    pub(super) fn search<'h, Q: Compare<K> + ?Sized>(self, key: &Q, bounds: &Bounds) -> (usize, bool)
    where
        K: Persist<'h>,
    {
        let len = self.len().min(KEYS);
        if K::ANY {
            return self.bisect(key, len);
        }
        for index in 0..len {
            // SAFETY: a key (2), checked.
            let found = unsafe {
                let found = self.key(index);
                verify_within(found, bounds);
                &*found
            };
            match key.compare(found) {
                Ordering::Greater => {}
                Ordering::Equal => return (index, true),
                Ordering::Less => return (index, false),
            }
        }
        (len, false)
    }

    /// For numeric keys: unpredictable branches cost more than comparisons.
    #[inline]
    fn bisect<'h, Q: Compare<K> + ?Sized>(self, key: &Q, len: usize) -> (usize, bool)
    where
        K: Persist<'h>,
    {
        const { assert!((KEYS + 1).is_power_of_two()) };
        // SAFETY: in the node (1); any bits are a value, also behind the last key.
        let compare = |index: usize| unsafe { key.compare(&*self.key(index)) };
        let (mut index, mut step) = (0, KEYS / 2 + 1);
        while step > 0 {
            let probe = index + step - 1;
            let behind = (probe < len) & compare(probe).is_gt();
            index += if behind { step } else { 0 };
            step /= 2;
        }
        (index, index < len && compare(index).is_eq())
    }
}
