//! B+-tree of order 8: up to eight keys in a node, each with a row, or with the node of the keys
//! from it on. Keys have 32 or 64 bits; the nodes are the structs with changing layout.
//!
//! Invariants: all leaves have one distance from the root; keys ascend, the first one of an inner
//! node is a lower bound or never read; only a root without keys is empty.

use crate::retention::{Body, Keyed, ORDER, Space};
use std::marker::PhantomData;

pub trait Node<S: Space>: Keyed<S, ORDER, Rest = Body> {}
impl<S: Space, N: Keyed<S, ORDER, Rest = Body>> Node<S> for N {}

/// A tree, by the place of its root's address; a copy is the same tree. All functions take trees of
/// the space.
pub struct Tree<N>(*mut u64, PhantomData<N>);

impl<N> Clone for Tree<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Tree<N> {}

#[derive(PartialEq)]
enum Left {
    Unchanged,
    Some,
    Nothing,
}

fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

#[inline]
fn before(keys: &[u64], key: u64) -> usize {
    keys.iter().filter(|here| **here < key).count()
}

#[inline]
fn toward(keys: &[u64], key: u64) -> usize {
    keys[1..].iter().filter(|here| **here <= key).count()
}

impl<N> Tree<N> {
    pub fn at(root: *mut u64) -> Self {
        Tree(root, PhantomData)
    }

    pub unsafe fn make<S: Space>(self, space: &mut S)
    where
        N: Node<S>,
    {
        let root = Self::node([0; ORDER], Body { count: 0, level: 0, slots: [0; ORDER] }, space);
        space.change(self.0.cast(), 8);
        // SAFETY: a place in the space.
        unsafe { self.0.write(root) };
    }

    fn node<S: Space>(keys: [u64; ORDER], body: Body, space: &mut S) -> u64
    where
        N: Node<S>,
    {
        let node = space.alloc(size_of::<N>()).cast::<N>();
        // SAFETY: a new block.
        unsafe { N::make(node, keys, body, space) };
        node.expose_provenance() as u64
    }

    unsafe fn root(self) -> *mut N {
        // SAFETY: a place in the space.
        pointer(unsafe { *self.0 })
    }

    pub unsafe fn get<S: Space>(self, key: u64, space: &mut S) -> Option<u64>
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let mut at = self.root();
            loop {
                let (keys, body) = (N::keys(at, space), &*N::rest(at));
                let keys = &keys[..body.count as usize];
                if body.level == 0 {
                    let index = before(keys, key);
                    return (keys.get(index) == Some(&key)).then(|| body.slots[index]);
                }
                at = pointer(body.slots[toward(keys, key)]);
            }
        }
    }

    pub unsafe fn insert<S: Space>(self, key: u64, value: u64, space: &mut S)
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let root = self.root();
            if let Some((right_key, right)) = Self::insert_below(root, key, value, space) {
                let mut keys = [0; ORDER];
                (keys[0], keys[1]) = (N::keys(root, space)[0], right_key);
                let mut slots = [0; ORDER];
                (slots[0], slots[1]) = (*self.0, right);
                let level = (*N::rest(root)).level + 1;
                let above = Self::node(keys, Body { count: 2, level, slots }, space);
                space.change(self.0.cast(), 8);
                self.0.write(above);
            }
        }
    }

    unsafe fn insert_below<S: Space>(at: *mut N, key: u64, value: u64, space: &mut S) -> Option<(u64, u64)>
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let (keys, body) = (N::keys(at, space), &*N::rest(at));
            let keys = &keys[..body.count as usize];
            if body.level == 0 {
                return Self::put(at, before(keys, key), key, value, space);
            }
            let index = toward(keys, key);
            let (key, node) = Self::insert_below(pointer(body.slots[index]), key, value, space)?;
            Self::put(at, index + 1, key, node, space)
        }
    }

    unsafe fn put<S: Space>(
        at: *mut N,
        index: usize,
        key: u64,
        slot: u64,
        space: &mut S,
    ) -> Option<(u64, u64)>
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let (mut keys, mut body) = (N::keys(at, space), *N::rest(at));
            let mut right = None;
            if body.count as usize == ORDER {
                let (mut right_keys, mut right_body) = half(&keys, &body);
                body.count -= right_body.count;
                if index > body.count as usize {
                    add(&mut right_keys, &mut right_body, index - body.count as usize, key, slot);
                } else {
                    add(&mut keys, &mut body, index, key, slot);
                }
                right = Some((right_keys[0], Self::node(right_keys, right_body, space)));
            } else {
                add(&mut keys, &mut body, index, key, slot);
            }
            Self::store(at, keys, body, space);
            right
        }
    }

    unsafe fn store<S: Space>(at: *mut N, keys: [u64; ORDER], body: Body, space: &mut S)
    where
        N: Node<S>,
    {
        space.change(at.cast(), size_of::<N>());
        // SAFETY: a node of the tree.
        unsafe {
            N::set_keys(at, keys, space);
            N::rest(at).write(body);
        }
    }
}

fn half(keys: &[u64; ORDER], body: &Body) -> ([u64; ORDER], Body) {
    let (mut right_keys, mut slots) = ([0; ORDER], [0; ORDER]);
    right_keys[..ORDER / 2].copy_from_slice(&keys[ORDER / 2..]);
    slots[..ORDER / 2].copy_from_slice(&body.slots[ORDER / 2..]);
    (right_keys, Body { count: ORDER as u32 / 2, level: body.level, slots })
}

fn add(keys: &mut [u64; ORDER], body: &mut Body, index: usize, key: u64, slot: u64) {
    let count = body.count as usize;
    keys.copy_within(index..count, index + 1);
    body.slots.copy_within(index..count, index + 1);
    (keys[index], body.slots[index]) = (key, slot);
    body.count += 1;
}

impl<N> Tree<N> {
    pub unsafe fn remove<S: Space>(self, key: u64, space: &mut S) -> bool
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let left = Self::remove_below(self.root(), key, space);
            let mut root = self.root();
            while (*N::rest(root)).level > 0 && (*N::rest(root)).count == 1 {
                space.change(self.0.cast(), 8);
                self.0.write((*N::rest(root)).slots[0]);
                Self::free(root, space);
                root = self.root();
            }
            left != Left::Unchanged
        }
    }

    unsafe fn remove_below<S: Space>(at: *mut N, key: u64, space: &mut S) -> Left
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let (mut keys, mut body) = (N::keys(at, space), *N::rest(at));
            let count = body.count as usize;
            let index = if body.level == 0 {
                let index = before(&keys[..count], key);
                if keys[..count].get(index) != Some(&key) {
                    return Left::Unchanged;
                }
                index
            } else {
                let index = toward(&keys[..count], key);
                let below = pointer::<N>(body.slots[index]);
                match Self::remove_below(below, key, space) {
                    Left::Nothing => Self::free(below, space),
                    left => return left,
                }
                index
            };
            keys.copy_within(index + 1..count, index);
            body.slots.copy_within(index + 1..count, index);
            body.count -= 1;
            Self::store(at, keys, body, space);
            if body.count == 0 { Left::Nothing } else { Left::Some }
        }
    }

    unsafe fn free<S: Space>(at: *mut N, space: &mut S)
    where
        N: Node<S>,
    {
        // SAFETY: a node that nothing leads to any more.
        unsafe {
            N::discard(at, space);
            space.free(at.cast());
        }
    }

    pub unsafe fn scan<S: Space>(
        self,
        range: std::ops::RangeInclusive<u64>,
        space: &mut S,
        each: &mut dyn FnMut(u64, u64) -> bool,
    ) where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe { Self::scan_below(self.root(), *range.start(), *range.end(), space, each) };
    }

    unsafe fn scan_below<S: Space>(
        at: *mut N,
        from: u64,
        to: u64,
        space: &mut S,
        each: &mut dyn FnMut(u64, u64) -> bool,
    ) -> bool
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let (keys, body) = (N::keys(at, space), &*N::rest(at));
            let keys = &keys[..body.count as usize];
            if body.level == 0 {
                let in_range = (before(keys, from)..keys.len()).take_while(|index| keys[*index] <= to);
                return in_range.into_iter().all(|index| each(keys[index], body.slots[index]));
            }
            let first = toward(keys, from);
            for (index, key) in keys.iter().enumerate().skip(first) {
                if index > first && *key > to {
                    return true;
                }
                if !Self::scan_below(pointer(body.slots[index]), from, to, space, each) {
                    return false;
                }
            }
            true
        }
    }

    pub unsafe fn first<S: Space>(
        self,
        range: std::ops::RangeInclusive<u64>,
        space: &mut S,
    ) -> Option<(u64, u64)>
    where
        N: Node<S>,
    {
        let mut found = None;
        let mut each = |key, value| {
            found = Some((key, value));
            false
        };
        // SAFETY: the caller's promise.
        unsafe { self.scan(range, space, &mut each) };
        found
    }

    pub unsafe fn last<S: Space>(
        self,
        range: std::ops::RangeInclusive<u64>,
        space: &mut S,
    ) -> Option<(u64, u64)>
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        let found = unsafe { Self::last_below(self.root(), *range.end(), space) };
        found.filter(|(key, _)| range.contains(key))
    }

    unsafe fn last_below<S: Space>(at: *mut N, to: u64, space: &mut S) -> Option<(u64, u64)>
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let (keys, body) = (N::keys(at, space), &*N::rest(at));
            let keys = &keys[..body.count as usize];
            if body.level == 0 {
                let index = keys.iter().filter(|key| **key <= to).count().checked_sub(1)?;
                return Some((keys[index], body.slots[index]));
            }
            // The slot's keys up to `to` may have been removed.
            let mut below = (0..=toward(keys, to)).rev();
            below.find_map(|index| Self::last_below(pointer(body.slots[index]), to, space))
        }
    }

    pub unsafe fn convert<S: Space, F: Node<S>>(self, space: &mut S)
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            let root = Self::convert_below::<S, F>(self.root(), space);
            space.change(self.0.cast(), 8);
            self.0.write(root);
        }
    }

    unsafe fn convert_below<S: Space, F: Node<S>>(at: *mut N, space: &mut S) -> u64
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree, each of which is used once more.
        unsafe {
            let (keys, mut body) = (N::keys(at, space), *N::rest(at));
            if body.level > 0 {
                for slot in &mut body.slots[..body.count as usize] {
                    *slot = Self::convert_below::<S, F>(pointer(*slot), space);
                }
            }
            Self::free(at, space);
            Tree::<F>::node(keys, body, space)
        }
    }

    pub unsafe fn nodes<S: Space>(self, each: &mut dyn FnMut(*mut N))
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe { Self::nodes_below::<S>(self.root(), each) };
    }

    unsafe fn nodes_below<S: Space>(at: *mut N, each: &mut dyn FnMut(*mut N))
    where
        N: Node<S>,
    {
        // SAFETY: nodes of the tree.
        unsafe {
            each(at);
            let body = &*N::rest(at);
            if body.level > 0 {
                body.slots[..body.count as usize]
                    .iter()
                    .for_each(|slot| Self::nodes_below::<S>(pointer(*slot), each));
            }
        }
    }
}
