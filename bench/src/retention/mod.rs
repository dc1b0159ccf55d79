//! Workloads of data retention: the maps of libpmemobj's examples, generic over layouts and
//! libraries.

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

/// A key and a value of one program version.
///
/// # Safety
/// A value owns all of its bytes except those that `discard` frees.
pub unsafe trait Entry<S: Space>: Sized {
    /// Makes an entry in new memory.
    ///
    /// # Safety
    /// `at` is aligned, and in the space.
    unsafe fn put(at: *mut Self, key: u64, value: u64, space: &mut S);

    /// # Safety
    /// An entry lies at `at`.
    unsafe fn key(at: *mut Self, space: &mut S) -> u64;

    /// # Safety
    /// An entry lies at `at`.
    unsafe fn value(at: *mut Self) -> u64;

    /// Called after a copy of an entry's bytes to `at`.
    ///
    /// # Safety
    /// An entry lies at `at`.
    unsafe fn was_moved(at: *mut Self, space: &mut S);

    /// # Safety
    /// An entry lies at `at`, and is unused.
    unsafe fn discard(at: *mut Self, space: &mut S);
}

pub trait Map<S: Space, E: Entry<S>>: Copy {
    /// The same with entries of another version.
    type Of<F: Entry<S>>: Map<S, F>;

    const NAME: &'static str;

    fn new(space: &mut S) -> Self;

    /// Adds a missing key.
    ///
    /// # Safety
    /// A map of this space, in this and all other functions.
    unsafe fn insert(self, key: u64, value: u64, space: &mut S);

    /// # Safety
    /// As for `insert`.
    unsafe fn remove(self, key: u64, space: &mut S) -> bool;

    /// # Safety
    /// As for `insert`.
    unsafe fn has(self, key: u64, space: &mut S) -> bool;

    /// # Safety
    /// As for `insert`.
    unsafe fn each(self, space: &mut S, each: &mut dyn FnMut(u64, u64));

    /// Converts to another layout node by node; this map is freed.
    ///
    /// # Safety
    /// As for `insert`.
    unsafe fn convert<F: Entry<S>>(self, space: &mut S) -> Self::Of<F>;

    /// The same bytes as a later version sees them.
    ///
    /// # Safety
    /// `F` has the layout of `E`.
    unsafe fn recast<F: Entry<S>>(self) -> Self::Of<F>;
}

/// Room for a value, zeroed.
///
/// # Safety
/// As for [`Entry::put`] of the value stored there.
unsafe fn node<S: Space, T>(space: &mut S) -> *mut T {
    space.alloc(size_of::<T>()).cast()
}

/// Stores to an existing place.
///
/// # Safety
/// The place is in the space.
#[inline]
unsafe fn set<S: Space, T>(at: *mut T, value: T, space: &mut S) {
    space.change(at.cast(), size_of::<T>());
    // SAFETY: the caller's promise.
    unsafe { at.write(value) };
}
