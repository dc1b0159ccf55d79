//! Workloads of data retention: the maps of libpmemobj's examples, written once for every layout of
//! their entries and for every library that stores them.

#![allow(unsafe_code)]

mod body;
mod btree;
mod ctree;
mod extended;
mod hashmap;
mod linked;
mod models;
mod plain;
mod rbtree;
mod skiplist;
mod space;
pub mod tpcc;
mod versions;

pub use body::{Body, ORDER};
pub use btree::BTree;
pub use ctree::CritBit;
pub use extended::{Pair, TreeNode};
pub use hashmap::HashMap;
pub use models::{Bytes, Mix, Programs, Script, Steps, Times};
pub use plain::Plain32;
pub use rbtree::RedBlack;
pub use skiplist::SkipList;
pub use space::{Own, PmemSpace, Space};
pub use versions::{Add, Change, Keyed, Parts, Recopy, Versions};

/// A key and a value, as one version of a program has them.
///
/// # Safety
/// All bytes of a value are its own but for those that `drop` frees.
pub unsafe trait Entry<S: Space>: Sized {
    /// Makes an entry in memory that is new.
    ///
    /// # Safety
    /// `at` is aligned, and in the space.
    unsafe fn put(at: *mut Self, key: u64, value: u64, space: &mut S);

    /// The key as the program has it.
    ///
    /// # Safety
    /// An entry lies at `at`.
    unsafe fn key(at: *mut Self, space: &mut S) -> u64;

    /// The value.
    ///
    /// # Safety
    /// An entry lies at `at`.
    unsafe fn value(at: *mut Self) -> u64;

    /// Called where an entry came to lie by a copy of its bytes.
    ///
    /// # Safety
    /// An entry lies at `at`.
    unsafe fn was_moved(at: *mut Self, space: &mut S);

    /// Frees what the entry owns.
    ///
    /// # Safety
    /// An entry lies at `at`, and is not used any more.
    unsafe fn discard(at: *mut Self, space: &mut S);
}

/// A map whose entries are `E`; a copy is the same map.
pub trait Map<S: Space, E: Entry<S>>: Copy {
    /// The same with entries of another version of the program.
    type Of<F: Entry<S>>: Map<S, F>;

    /// Its name in the paper.
    const NAME: &'static str;

    /// An empty one.
    fn new(space: &mut S) -> Self;

    /// Adds a key that is not there.
    ///
    /// # Safety
    /// A map of this space, in this and all others.
    unsafe fn insert(self, key: u64, value: u64, space: &mut S);

    /// Removes a key, if it is there.
    ///
    /// # Safety
    /// As for `insert`.
    unsafe fn remove(self, key: u64, space: &mut S) -> bool;

    /// Whether a key is there.
    ///
    /// # Safety
    /// As for `insert`.
    unsafe fn has(self, key: u64, space: &mut S) -> bool;

    /// Calls `each` with all keys and values.
    ///
    /// # Safety
    /// As for `insert`.
    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64));

    /// A map with entries of another layout, made node by node; this one is freed.
    ///
    /// # Safety
    /// As for `insert`.
    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> Self::Of<F>;

    /// The same bytes as a later version of the program sees them.
    ///
    /// # Safety
    /// `F` has the layout of `E`.
    unsafe fn recast<F: Entry<S>>(self) -> Self::Of<F>;
}

/// Room for a value, zeroed where nothing is stored.
///
/// # Safety
/// As for [`Entry::put`] of the value stored there.
unsafe fn node<S: Space, T>(space: &mut S) -> *mut T {
    space.alloc(size_of::<T>()).cast()
}

/// Stores to a place that was there before.
///
/// # Safety
/// The place is in the space.
#[inline]
unsafe fn set<S: Space, T>(at: *mut T, value: T, space: &mut S) {
    space.change(at.cast(), size_of::<T>());
    // SAFETY: the caller's promise.
    unsafe { at.write(value) };
}
