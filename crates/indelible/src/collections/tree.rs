//! A B-tree: ordered keys, in nodes at least half full.
//!
//! Invariants of [`Tree`], checked when a reference is made, and kept by its methods:
//!
//! 1. If `height` is 0, so is `len`, and `root` is 0 or the first address of the heap to allocate
//!    in.
//! 2. Otherwise `root` is the address of a node of level `height - 1`, and leaves have level 0.
//!    Nodes are verified on first visit: a damaged tree has no rings, as levels go down.
//!
//! An operation allocates all it needs before it changes anything.

#![allow(unsafe_code)]

use super::fields::{Field, fields};
use super::key::Compare;
use super::layout::Layout;
use super::node::{KEYS, LEAST, LEVELS, Node};
use super::persist::{Bounds, Persist};
use super::place::{HeapRef, bounds_at, each, finally, free};
use super::search::Search;
use crate::error::Result;
use crate::heap::Heap;
use std::marker::PhantomData;

#[repr(C)]
pub(super) struct Tree<'h, K: Persist<'h>, V: Persist<'h>> {
    root: u64,
    height: u64,
    len: u64,
    owns: PhantomData<(&'h Heap, K, V)>,
}

pub(super) struct Path<K, V> {
    nodes: [Node<K, V>; LEVELS],
    places: [u8; LEVELS],
    pub(super) level: usize,
}

impl<K, V> Clone for Path<K, V> {
    fn clone(&self) -> Self {
        Path { ..*self }
    }
}

impl<K, V> Path<K, V> {
    pub(super) fn new() -> Self {
        Path { nodes: [Node::NONE; LEVELS], places: [0; LEVELS], level: 0 }
    }

    #[inline]
    pub(super) fn set(&mut self, level: usize, node: Node<K, V>, place: usize) {
        (self.nodes[level], self.places[level]) = (node, place as u8);
    }

    #[inline]
    pub(super) fn step(&self, level: usize) -> (Node<K, V>, usize) {
        (self.nodes[level], usize::from(self.places[level]))
    }

    #[inline]
    pub(super) fn end(&self) -> (Node<K, V>, usize) {
        self.step(self.level)
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Tree<'h, K, V> {
    pub(super) const FIELDS: &'static [Field] = fields!(Tree<'h, K, V> { root: u64, height: u64, len: u64 });

    pub(super) const fn new(root: u64) -> Self {
        const { assert!(size_of::<K>() > 0, "keys without bytes are all the same") };
        Tree { root, height: 0, len: 0, owns: PhantomData }
    }

    #[inline]
    pub(super) fn heap(&self) -> HeapRef<'h> {
        // SAFETY: our node, our heap, or our place.
        unsafe { HeapRef::of_container(self.root, self) }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) const fn height(&self) -> usize {
        self.height as usize
    }

    #[inline]
    pub(super) fn bounds(&self) -> Bounds {
        bounds_at(self.root as usize)
    }

    #[inline]
    pub(super) fn root(&self, bounds: &Bounds) -> Node<K, V> {
        Node::open(self.root, self.height() - 1, bounds)
    }

    #[inline]
    pub(super) fn find<Q: Compare<K> + ?Sized>(&self, key: &Q) -> Option<(Node<K, V>, usize)> {
        if self.height == 0 {
            return None;
        }
        let bounds = self.bounds();
        let mut node = self.root(&bounds);
        let mut level = self.height() - 1;
        loop {
            let (index, found) = node.search(key, &bounds);
            if found {
                return Some((node, index));
            }
            if level == 0 {
                return None;
            }
            level -= 1;
            node = Node::open_to_search(node.child(index), level, &bounds);
        }
    }

    #[inline]
    pub(super) fn search<Q: Compare<K> + ?Sized>(&self, key: &Q, path: &mut Path<K, V>) -> bool {
        if self.height == 0 {
            return false;
        }
        let bounds = self.bounds();
        let mut node = self.root(&bounds);
        path.level = self.height() - 1;
        loop {
            let (index, found) = node.search(key, &bounds);
            path.set(path.level, node, index);
            if found || path.level == 0 {
                return found;
            }
            path.level -= 1;
            node = Node::open_to_search(node.child(index), path.level, &bounds);
        }
    }

    pub(super) fn insert(&mut self, path: &Path<K, V>, key: K, value: V) -> Result<*mut V> {
        let heap = self.heap();
        if self.height == 0 {
            let root = Node::new(0, heap)?;
            root.insert(0, key, value, 0);
            (self.root, self.height, self.len) = (root.address(), 1, 1);
            return Ok(root.value(0));
        }
        let (leaf, index) = path.step(0);
        if leaf.len() < KEYS {
            leaf.insert(index, key, value, 0);
            self.len += 1;
            return Ok(leaf.value(index));
        }
        let mut spare = self.spare(path, heap)?;
        let mut spares = spare.iter_mut().map(|node| std::mem::replace(node, Node::NONE));
        let mut new = || spares.next().expect("one for each node that is split, and a root");
        let (mut pair, mut right, place) = put(leaf, index, key, value, 0, new());
        self.len += 1;
        for level in 1..self.height() {
            let (node, index) = path.step(level);
            if node.len() < KEYS {
                node.insert(index, pair.0, pair.1, right.address());
                return Ok(place);
            }
            (pair, right, _) = put(node, index, pair.0, pair.1, right.address(), new());
        }
        let root = new();
        root.set_child(0, self.root);
        root.insert(0, pair.0, pair.1, right.address());
        (self.root, self.height) = (root.address(), self.height + 1);
        Ok(place)
    }

    #[cold]
    fn spare(&self, path: &Path<K, V>, heap: HeapRef<'h>) -> Result<[Node<K, V>; LEVELS]> {
        let mut spare = [Node::NONE; LEVELS];
        let full = (0..self.height()).take_while(|level| path.step(*level).0.len() == KEYS).count();
        let count = if full == self.height() { full + 1 } else { full };
        assert!(count <= LEVELS && self.height() < LEVELS, "no tree is as high");
        for level in 0..count {
            match Node::new(level, heap) {
                Ok(node) => spare[level] = node,
                Err(error) => {
                    for node in &spare[..level] {
                        // SAFETY: new, and without references.
                        unsafe { free(node.address()) };
                    }
                    return Err(error);
                }
            }
        }
        Ok(spare)
    }

    pub(super) fn remove(&mut self, path: &mut Path<K, V>) -> (K, V) {
        let bounds = self.bounds();
        let (node, index) = path.end();
        let pair = if path.level == 0 {
            node.remove(index)
        } else {
            while path.level > 0 {
                let (node, index) = path.end();
                path.level -= 1;
                let child = Node::open(node.child(index), path.level, &bounds);
                path.set(path.level, child, child.len());
            }
            let (leaf, len) = path.step(0);
            let (key, value) = leaf.remove(len - 1);
            node.replace(index, key, value)
        };
        self.len = self.len.saturating_sub(1);
        self.refill(path, &bounds);
        pair
    }

    /// Whether the pair at the end of `from` can be removed, and one added at the end of `to`, with
    /// no node added or removed: both ends lie in leaves, and one can give, the other take.
    pub(super) fn moves_within(&self, from: &Path<K, V>, to: &Path<K, V>) -> bool {
        let ((old, _), (new, _)) = (from.end(), to.step(0));
        let gives = old.len() > if self.height == 1 { 1 } else { LEAST };
        let takes = new.len() < KEYS || new.address() == old.address();
        from.level == 0 && gives && takes
    }

    fn refill(&mut self, path: &Path<K, V>, bounds: &Bounds) {
        for level in 0..self.height() - 1 {
            let (node, _) = path.step(level);
            if node.len() >= LEAST {
                return;
            }
            let (parent, index) = path.step(level + 1);
            let before = (index > 0).then(|| Node::open(parent.child(index - 1), level, bounds));
            let behind = (index < parent.len()).then(|| Node::open(parent.child(index + 1), level, bounds));
            match (before, behind) {
                (Some(left), _) if left.len() > LEAST => return rotate_right(parent, index - 1, left, node),
                (_, Some(right)) if right.len() > LEAST => return rotate_left(parent, index, node, right),
                (Some(left), _) => merge(parent, index - 1, left, node),
                (_, Some(right)) => merge(parent, index, node, right),
                (None, None) => return,
            }
        }
        let root = path.step(self.height() - 1).0;
        if root.len() == 0 {
            let base = self.heap().base();
            self.height -= 1;
            self.root = if self.height == 0 { base } else { root.child(0) };
            if self.height == 0 {
                self.len = 0;
            }
            // SAFETY: our own node, and empty.
            unsafe { free(root.address()) };
        }
    }

    pub(super) fn clear(&mut self) {
        if self.height == 0 {
            return;
        }
        let (bounds, base) = (self.bounds(), self.heap().base());
        let (root, height) = (self.root, self.height());
        (self.root, self.height, self.len) = (base, 0, 0);
        // The maximum: damaged nodes may share children.
        let mut nodes = bounds.len / Node::<K, V>::size(0);
        give_back::<K, V>(root, height - 1, &bounds, &mut nodes);
    }
}

/// Returns the key between both nodes, the new node, and the value's place unless it is that key's.
#[allow(clippy::type_complexity)]
fn put<'h, K: Persist<'h>, V: Persist<'h>>(
    node: Node<K, V>,
    index: usize,
    key: K,
    value: V,
    child: u64,
    right: Node<K, V>,
) -> ((K, V), Node<K, V>, *mut V) {
    if index <= LEAST {
        let pair = node.split(LEAST, right);
        node.insert(index, key, value, child);
        (pair, right, node.value(index))
    } else {
        let pair = node.split(LEAST, right);
        right.insert(index - LEAST - 1, key, value, child);
        (pair, right, right.value(index - LEAST - 1))
    }
}

fn rotate_right<'h, K: Persist<'h>, V: Persist<'h>>(
    parent: Node<K, V>,
    index: usize,
    left: Node<K, V>,
    right: Node<K, V>,
) {
    let last = left.len() - 1;
    let child = if left.level() > 0 { left.child(last + 1) } else { 0 };
    let (key, value) = left.remove(last);
    let (key, value) = parent.replace(index, key, value);
    right.push_front(key, value, child);
}

fn rotate_left<'h, K: Persist<'h>, V: Persist<'h>>(
    parent: Node<K, V>,
    index: usize,
    left: Node<K, V>,
    right: Node<K, V>,
) {
    let (key, value, child) = right.pop_front();
    let (key, value) = parent.replace(index, key, value);
    left.insert(left.len(), key, value, child);
}

fn merge<'h, K: Persist<'h>, V: Persist<'h>>(
    parent: Node<K, V>,
    index: usize,
    left: Node<K, V>,
    right: Node<K, V>,
) {
    let (key, value) = parent.remove(index);
    left.join(key, value, right);
    // SAFETY: empty, and without references.
    unsafe { free(right.address()) };
}

fn give_back<'h, K: Persist<'h>, V: Persist<'h>>(
    address: u64,
    level: usize,
    bounds: &Bounds,
    nodes: &mut usize,
) {
    let Some(node) = Node::<K, V>::try_open(address, level, bounds) else { return };
    let Some(left) = nodes.checked_sub(1) else { return };
    *nodes = left;
    let children = if level > 0 { node.len() + 1 } else { 0 };
    let drop_all = || {
        finally(
            || each(0..children, |index| give_back::<K, V>(node.child(index), level - 1, bounds, nodes)),
            || node.discard(),
        );
    };
    // SAFETY: the tree's own node, whose contents were dropped.
    finally(drop_all, || unsafe { free(address) });
}

impl<'h, K: Persist<'h>, V: Persist<'h>> Drop for Tree<'h, K, V> {
    fn drop(&mut self) {
        self.clear();
    }
}

// SAFETY: pointer and numbers are checked (1).
unsafe impl<'h, K: Persist<'h>, V: Persist<'h>> Persist<'h> for Tree<'h, K, V> {
    const ANY: bool = false;

    #[inline]
    unsafe fn check(at: *const Self, bounds: &Bounds) -> bool {
        // SAFETY: readable; any bits are integers.
        let [root, height, len] = unsafe { at.cast::<[u64; 3]>().read() };
        match height {
            0 => len == 0 && (root == 0 || root == bounds.base as u64),
            _ => {
                height <= LEVELS as u64
                    && (1..=bounds.len as u64).contains(&len)
                    && Node::<K, V>::fits(root, height as usize - 1, bounds)
            }
        }
    }

    unsafe fn expect_extensions(at: *const Self, bounds: &Bounds, search: &mut Search) -> Result<()> {
        // SAFETY: readable; any bits are integers.
        let [root, height, _] = unsafe { at.cast::<[u64; 3]>().read() };
        match (height as usize).checked_sub(1) {
            // SAFETY: the nodes of a borrowed value.
            Some(level) => unsafe { search_node::<K, V>(root, level, bounds, search) },
            None => Ok(()),
        }
    }

    fn describe(layout: &mut Layout) {
        K::describe(layout);
        V::describe(layout);
    }

    fn type_name(out: &mut String) {
        K::type_name(out);
        out.push_str(", ");
        V::type_name(out);
    }
}

/// # Safety
/// Only atomics in the values change during the call.
unsafe fn search_node<'h, K: Persist<'h>, V: Persist<'h>>(
    address: u64,
    level: usize,
    bounds: &Bounds,
    search: &mut Search,
) -> Result<()> {
    let Some(node) = Node::<K, V>::try_open(address, level, bounds).filter(|_| search.left() > 0) else {
        return Ok(());
    };
    for index in 0..node.len() {
        // SAFETY: keys and values of a node that lies in the object.
        unsafe {
            K::search(node.key(index), bounds, search)?;
            V::search(node.value(index), bounds, search)?;
        }
    }
    let below = level.checked_sub(1).map(|level| (0..=node.len(), level));
    let Some((mut all, level)) = below else { return Ok(()) };
    // SAFETY: the caller's promise.
    all.try_for_each(|index| unsafe { search_node::<K, V>(node.child(index), level, bounds, search) })
}
