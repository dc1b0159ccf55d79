//! Walks an ordered map from both ends.
//!
//! Invariant: both ends are gaps between keys, each by the way to it, the front not behind the
//! back; keys and values between them are the iterator's, and are checked at their turn. `left`
//! bounds the walk of a tree whose damaged nodes share children.

#![allow(unsafe_code)]

use super::key::Compare;
use super::node::Node;
use super::ordered_map::PBTreeMap;
use super::persist::{Bounds, Persist};
use super::place::{lent, verify_within};
use super::tree::{Path, Tree};
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

pub(super) struct Edge<K, V> {
    path: Path<K, V>,
    height: usize,
    leaf: Node<K, V>,
    index: usize,
    len: usize,
}

impl<K, V> Clone for Edge<K, V> {
    fn clone(&self) -> Self {
        Edge { path: self.path.clone(), ..*self }
    }
}

impl<K, V> Edge<K, V> {
    pub(super) fn new<'h>(tree: &Tree<'h, K, V>, bounds: &Bounds, mut behind: impl FnMut(&K) -> bool) -> Self
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let (mut path, height) = (Path::new(), tree.height());
        let mut node = tree.root(bounds);
        for level in (0..height).rev() {
            let mut index = 0;
            // SAFETY: a key of the node, checked.
            while index < node.len() && behind(unsafe { checked(node.key(index), bounds) }) {
                index += 1;
            }
            path.set(level, node, index);
            if level > 0 {
                node = Node::open(node.child(index), level - 1, bounds);
            }
        }
        let (leaf, index) = path.step(0);
        Edge { path, height, leaf, index, len: leaf.len() }
    }

    pub(super) fn end<'h>(tree: &Tree<'h, K, V>, bounds: &Bounds, last: bool) -> Self
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let height = tree.height();
        let mut edge = Edge { path: Path::new(), height, leaf: Node::NONE, index: 0, len: 0 };
        edge.descend(tree.root(bounds), height - 1, last, bounds);
        edge
    }

    fn descend(&mut self, mut node: Node<K, V>, mut level: usize, last: bool, bounds: &Bounds) {
        loop {
            let index = if last { node.len() } else { 0 };
            self.path.set(level, node, index);
            if level == 0 {
                (self.leaf, self.index, self.len) = (node, index, node.len());
                return;
            }
            level -= 1;
            node = Node::open(node.child(index), level, bounds);
        }
    }

    #[inline]
    pub(super) fn next(&mut self, bounds: &Bounds) -> Option<(Node<K, V>, usize)> {
        if self.index < self.len {
            self.index += 1;
            return Some((self.leaf, self.index - 1));
        }
        self.climb(bounds, false)
    }

    #[inline]
    fn prev(&mut self, bounds: &Bounds) -> Option<(Node<K, V>, usize)> {
        if self.index > 0 {
            self.index -= 1;
            return Some((self.leaf, self.index));
        }
        self.climb(bounds, true)
    }

    fn climb(&mut self, bounds: &Bounds, back: bool) -> Option<(Node<K, V>, usize)> {
        for level in 1..self.height {
            let (node, index) = self.path.step(level);
            let (key, child) = match back {
                true => (index.checked_sub(1), index.wrapping_sub(1)),
                false => ((index < node.len()).then_some(index), index + 1),
            };
            if let Some(key) = key {
                self.path.set(level, node, child);
                self.descend(Node::open(node.child(child), level - 1, bounds), level - 1, back, bounds);
                return Some((node, key));
            }
        }
        None
    }

    pub(super) fn path_to(&self, node: Node<K, V>, index: usize) -> Path<K, V> {
        let mut path = self.path.clone();
        path.level = node.level();
        path.set(path.level, node, index);
        path
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        let inner = (1..self.height).rev().map(|level| self.path.step(level).1);
        inner.chain([self.index])
    }
}

/// # Safety
/// A place in a node that holds a key or value.
#[inline]
pub(super) unsafe fn checked<'a, 'h: 'a, T: Persist<'h>>(at: *const T, bounds: &Bounds) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe {
        verify_within(at, bounds);
        &*at
    }
}

/// # Safety
/// As for [`checked`], and it is the caller's alone.
#[inline]
pub(super) unsafe fn checked_mut<'a, 'h: 'a, T: Persist<'h>>(at: *mut T, bounds: &Bounds) -> &'a mut T {
    // SAFETY: the caller's promise.
    unsafe {
        verify_within(at, bounds);
        lent(at, 1);
        &mut *at
    }
}

struct Walk<K, V> {
    ends: Option<(Edge<K, V>, Edge<K, V>)>,
    bounds: Bounds,
    left: usize,
}

impl<K, V> Clone for Walk<K, V> {
    fn clone(&self) -> Self {
        Walk { ends: self.ends.clone(), ..*self }
    }
}

impl<K, V> Walk<K, V> {
    fn all<'h>(tree: &Tree<'h, K, V>) -> Self
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let bounds = tree.bounds();
        let ends =
            (tree.height() > 0).then(|| (Edge::end(tree, &bounds, false), Edge::end(tree, &bounds, true)));
        Walk { ends, bounds, left: tree.len() }
    }

    fn range<'h, Q: Compare<K> + ?Sized>(tree: &Tree<'h, K, V>, range: &impl RangeBounds<Q>) -> Self
    where
        K: Persist<'h>,
        V: Persist<'h>,
    {
        let bounds = tree.bounds();
        if tree.height() == 0 {
            return Walk { ends: None, bounds, left: 0 };
        }
        let front = match range.start_bound() {
            Bound::Unbounded => Edge::end(tree, &bounds, false),
            Bound::Included(start) => Edge::new(tree, &bounds, |key| start.compare(key).is_gt()),
            Bound::Excluded(start) => Edge::new(tree, &bounds, |key| start.compare(key).is_ge()),
        };
        let back = match range.end_bound() {
            Bound::Unbounded => Edge::end(tree, &bounds, true),
            Bound::Included(end) => Edge::new(tree, &bounds, |key| end.compare(key).is_ge()),
            Bound::Excluded(end) => Edge::new(tree, &bounds, |key| end.compare(key).is_gt()),
        };
        assert!(front.places().le(back.places()), "a range that ends before it begins");
        Walk { ends: Some((front, back)), bounds, left: tree.len() }
    }

    #[inline]
    fn next(&mut self) -> Option<(Node<K, V>, usize)> {
        let (front, back) = self.ends.as_mut()?;
        if self.left == 0 || (front.leaf == back.leaf && front.index == back.index) {
            return None;
        }
        self.left -= 1;
        front.next(&self.bounds)
    }

    #[inline]
    fn fold<B>(self, init: B, mut f: impl FnMut(B, Node<K, V>, usize, &Bounds) -> B) -> B {
        let (mut value, mut left, bounds) = (init, self.left, self.bounds);
        let Some((mut front, back)) = self.ends else { return value };
        loop {
            let (leaf, begin, last) = (front.leaf, front.index, front.leaf == back.leaf);
            let end = if last { back.index } else { front.len };
            let count = end.saturating_sub(begin).min(left);
            left -= count;
            let next = if last || left == 0 { None } else { front.climb(&bounds, false) };
            for index in begin..begin + count {
                value = f(value, leaf, index, &bounds);
            }
            let Some((node, index)) = next else { return value };
            value = f(value, node, index, &bounds);
            left -= 1;
        }
    }

    #[inline]
    fn next_back(&mut self) -> Option<(Node<K, V>, usize)> {
        let (front, back) = self.ends.as_mut()?;
        if self.left == 0 || (front.leaf == back.leaf && front.index == back.index) {
            return None;
        }
        self.left -= 1;
        back.prev(&self.bounds)
    }
}

macro_rules! iterator {
    ($(#[$doc:meta])* $name:ident, $item:ty, $of:ty, ($node:ident, $index:ident, $bounds:ident) => $pair:expr) => {
        $(#[$doc])*
        pub struct $name<'a, K, V> {
            walk: Walk<K, V>,
            of: PhantomData<$of>,
        }

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                let ($node, $index) = self.walk.next()?;
                let $bounds = &self.walk.bounds;
                // SAFETY: the invariant.
                Some(unsafe { $pair })
            }

            #[inline]
            fn fold<B, F: FnMut(B, $item) -> B>(self, init: B, mut f: F) -> B {
                // SAFETY: as for `next`.
                self.walk.fold(init, |value, $node, $index, $bounds| f(value, unsafe { $pair }))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (0, Some(self.walk.left))
            }
        }

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> DoubleEndedIterator for $name<'a, K, V> {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                let ($node, $index) = self.walk.next_back()?;
                let $bounds = &self.walk.bounds;
                // SAFETY: the invariant.
                Some(unsafe { $pair })
            }
        }

        impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> FusedIterator for $name<'a, K, V> {}
    };
}

iterator! {
    /// Keys and values, in key order.
    TreeIter, (&'a K, &'a V), &'a (K, V),
    (node, index, bounds) => (checked(node.key(index), bounds), checked(node.value(index), bounds))
}
iterator! {
    /// Keys and mutable values, in key order.
    TreeIterMut, (&'a K, &'a mut V), &'a mut (K, V),
    (node, index, bounds) => {
        (checked(node.key(index), bounds), checked_mut(node.value(index), bounds))
    }
}
iterator! {
    /// Keys in order.
    TreeKeys, &'a K, &'a (K, V), (node, index, bounds) => checked(node.key(index), bounds)
}
iterator! {
    /// Values, in key order.
    TreeValues, &'a V, &'a (K, V), (node, index, bounds) => checked(node.value(index), bounds)
}
iterator! {
    /// Mutable values, in key order.
    TreeValuesMut, &'a mut V, &'a mut (K, V),
    (node, index, bounds) => {
        checked_mut(node.value(index), bounds)
    }
}

impl<K, V> Clone for TreeIter<'_, K, V> {
    fn clone(&self) -> Self {
        TreeIter { walk: self.walk.clone(), of: PhantomData }
    }
}

impl<'a, K, V> TreeIter<'a, K, V> {
    pub(super) fn into_keys(self) -> TreeKeys<'a, K, V> {
        TreeKeys { walk: self.walk, of: PhantomData }
    }
}

impl<'h, K: Persist<'h>, V: Persist<'h>> PBTreeMap<'h, K, V> {
    /// Keys and values, in key order.
    pub fn iter(&self) -> TreeIter<'_, K, V> {
        TreeIter { walk: Walk::all(&self.tree), of: PhantomData }
    }

    /// Keys and mutable values, in key order.
    pub fn iter_mut(&mut self) -> TreeIterMut<'_, K, V> {
        TreeIterMut { walk: Walk::all(&self.tree), of: PhantomData }
    }

    /// The keys, in order.
    pub fn keys(&self) -> TreeKeys<'_, K, V> {
        TreeKeys { walk: Walk::all(&self.tree), of: PhantomData }
    }

    /// The values, in key order.
    pub fn values(&self) -> TreeValues<'_, K, V> {
        TreeValues { walk: Walk::all(&self.tree), of: PhantomData }
    }

    /// Mutable values, in key order.
    pub fn values_mut(&mut self) -> TreeValuesMut<'_, K, V> {
        TreeValuesMut { walk: Walk::all(&self.tree), of: PhantomData }
    }

    /// Keys within bounds, with their values.
    ///
    /// # Panics
    /// If the range ends before it begins.
    pub fn range<Q: Compare<K> + ?Sized>(&self, range: impl RangeBounds<Q>) -> TreeIter<'_, K, V> {
        TreeIter { walk: Walk::range(&self.tree, &range), of: PhantomData }
    }

    /// As [`range`](PBTreeMap::range), with mutable values.
    ///
    /// # Panics
    /// If the range ends before it begins.
    pub fn range_mut<Q: Compare<K> + ?Sized>(&mut self, range: impl RangeBounds<Q>) -> TreeIterMut<'_, K, V> {
        TreeIterMut { walk: Walk::range(&self.tree, &range), of: PhantomData }
    }
}

impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> IntoIterator for &'a PBTreeMap<'h, K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = TreeIter<'a, K, V>;

    fn into_iter(self) -> TreeIter<'a, K, V> {
        self.iter()
    }
}

impl<'a, 'h: 'a, K: Persist<'h>, V: Persist<'h>> IntoIterator for &'a mut PBTreeMap<'h, K, V> {
    type Item = (&'a K, &'a mut V);
    type IntoIter = TreeIterMut<'a, K, V>;

    fn into_iter(self) -> TreeIterMut<'a, K, V> {
        self.iter_mut()
    }
}

/// Keys and values of a consumed map, in key order.
pub struct TreeIntoIter<'h, K: Persist<'h>, V: Persist<'h>>(PBTreeMap<'h, K, V>);

impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> Iterator for TreeIntoIter<'h, K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.0.pop_first()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> DoubleEndedIterator for TreeIntoIter<'h, K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        self.0.pop_last()
    }
}

impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> ExactSizeIterator for TreeIntoIter<'h, K, V> {}
impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> FusedIterator for TreeIntoIter<'h, K, V> {}

impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> IntoIterator for PBTreeMap<'h, K, V> {
    type Item = (K, V);
    type IntoIter = TreeIntoIter<'h, K, V>;

    fn into_iter(self) -> TreeIntoIter<'h, K, V> {
        TreeIntoIter(self)
    }
}
