//! An ordered map on libpmemobj's transactions: a B-tree with up to fifteen keys per node,
//! snapshotted whole before changes.

#![allow(unsafe_code)]

use super::{GONE, NativeMap, Opened, Pair, Place, on_pmem};
use crate::Result;
use crate::peers::pmem::{Pmem, Transaction};
use std::ptr;

const KEYS: usize = 15;
const MIDDLE: usize = KEYS / 2;

/// Invariant 1: the offset of the root node, of level `height - 1`; no node if `height` is 0.
#[repr(C)]
struct Root {
    node: u64,
    height: u64,
}

/// Invariant 2: `len` is at most [`KEYS`]. The first `len` keys ascend and have values; an inner
/// node has `len + 1` children of the level below.
#[repr(C)]
struct Leaf {
    len: u64,
    keys: [u64; KEYS],
    values: [u64; KEYS],
}

#[repr(C)]
struct Inner {
    leaf: Leaf,
    children: [u64; KEYS + 1],
}

type Node = *mut Inner;

struct PmemTree(Pmem);

pub fn open(place: &Place<'_>) -> Result<Opened> {
    on_pmem(place, size_of::<Root>(), |pmem| Ok(PmemTree(pmem)), PmemTree)
}

const fn size(level: u64) -> usize {
    if level == 0 { size_of::<Leaf>() } else { size_of::<Inner>() }
}

/// # Safety
/// A node (2).
unsafe fn search(node: Node, key: u64) -> (usize, bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let keys = &(&(*node).leaf.keys)[..(*node).leaf.len as usize];
        let at = keys.iter().position(|found| *found >= key).unwrap_or(keys.len());
        (at, keys.get(at) == Some(&key))
    }
}

/// # Safety
/// A node of this level that is not full and may be stored to.
unsafe fn put(node: Node, level: u64, at: usize, (key, value): Pair, child: u64) {
    // SAFETY: the caller's promise; within the arrays, as `at <= len < KEYS` (2).
    unsafe {
        let len = (*node).leaf.len as usize;
        let (keys, values) = (&raw mut (*node).leaf.keys, &raw mut (*node).leaf.values);
        ptr::copy(keys.cast::<u64>().add(at), keys.cast::<u64>().add(at + 1), len - at);
        ptr::copy(values.cast::<u64>().add(at), values.cast::<u64>().add(at + 1), len - at);
        ((*keys)[at], (*values)[at]) = (key, value);
        if level > 0 {
            let children = (&raw mut (*node).children).cast::<u64>();
            ptr::copy(children.add(at + 1), children.add(at + 2), len - at);
            *children.add(at + 1) = child;
        }
        (*node).leaf.len += 1;
    }
}

impl PmemTree {
    fn root(&self) -> *mut Root {
        self.0.root().cast()
    }

    fn node(&self, offset: u64) -> Node {
        self.0.at(offset)
    }

    /// Splits the full child `at` of an added node with room.
    unsafe fn split(&self, transaction: &Transaction<'_>, parent: Node, level: u64, at: usize) -> Result<()> {
        // SAFETY: nodes (2), stored to when they were added or are new.
        unsafe {
            let left = self.node((*parent).children[at]);
            let offset = transaction.alloc(size(level - 1), false)?;
            let right = self.node(offset);
            transaction.add(left.cast(), size(level - 1))?;
            let moved = KEYS - MIDDLE - 1;
            let (from, to) = (&(*left).leaf, &mut (*right).leaf);
            to.keys[..moved].copy_from_slice(&from.keys[MIDDLE + 1..]);
            to.values[..moved].copy_from_slice(&from.values[MIDDLE + 1..]);
            to.len = moved as u64;
            let middle = (from.keys[MIDDLE], from.values[MIDDLE]);
            if level > 1 {
                let from = &(*left).children;
                (&mut (*right).children)[..=moved].copy_from_slice(&from[MIDDLE + 1..]);
            }
            (*left).leaf.len = MIDDLE as u64;
            put(parent, level, at, middle, offset);
        }
        Ok(())
    }

    unsafe fn roomy_root(&self, transaction: &Transaction<'_>) -> Result<(Node, u64)> {
        // SAFETY: (1, 2); the stores go to places that were added or are new.
        unsafe {
            let root = self.root();
            let full = (*root).height > 0 && (*self.node((*root).node)).leaf.len as usize == KEYS;
            if (*root).height == 0 || full {
                let level = (*root).height;
                let offset = transaction.alloc(size(level), false)?;
                let node = self.node(offset);
                (*node).leaf.len = 0;
                if full {
                    (*node).children[0] = (*root).node;
                    self.split(transaction, node, level, 0)?;
                }
                transaction.add(root.cast(), size_of::<Root>())?;
                *root = Root { node: offset, height: level + 1 };
            }
            Ok((self.node((*root).node), (*root).height - 1))
        }
    }

    fn insert_one(&self, transaction: &Transaction<'_>, pair: Pair) -> Result<()> {
        // SAFETY: (1, 2); a node is added before it is stored to.
        unsafe {
            let (mut node, mut level) = self.roomy_root(transaction)?;
            loop {
                let (mut at, mut found) = search(node, pair.0);
                if !found && level > 0 {
                    let child = self.node((*node).children[at]);
                    if (*child).leaf.len as usize == KEYS {
                        transaction.add(node.cast(), size(level))?;
                        self.split(transaction, node, level, at)?;
                        (at, found) = search(node, pair.0);
                    }
                    if !found {
                        (node, level) = (self.node((*node).children[at]), level - 1);
                        continue;
                    }
                }
                transaction.add(node.cast(), size(level))?;
                match found {
                    true => (&mut (*node).leaf.values)[at] = pair.1,
                    false => put(node, level, at, pair, 0),
                }
                return Ok(());
            }
        }
    }

    fn get(&self, key: u64) -> Option<u64> {
        // SAFETY: (1, 2).
        unsafe {
            let mut node = self.node((*self.root()).node);
            for level in (0..(*self.root()).height).rev() {
                let (at, found) = search(node, key);
                if found {
                    return Some((&(*node).leaf.values)[at]);
                }
                if level > 0 {
                    node = self.node((&(*node).children)[at]);
                }
            }
        }
        None
    }

    unsafe fn walk_node(&self, offset: u64, level: u64, each: &mut impl FnMut(u64, u64)) {
        // SAFETY: a node of this level (2).
        unsafe {
            let node = self.node(offset);
            for at in 0..(*node).leaf.len as usize {
                if level > 0 {
                    self.walk_node((&(*node).children)[at], level - 1, each);
                }
                each((&(*node).leaf.keys)[at], (&(*node).leaf.values)[at]);
            }
            if level > 0 {
                self.walk_node((&(*node).children)[(*node).leaf.len as usize], level - 1, each);
            }
        }
    }
}

impl NativeMap for PmemTree {
    fn insert(&mut self, pairs: &[Pair]) -> Result<()> {
        self.0
            .transaction(|transaction| pairs.iter().try_for_each(|pair| self.insert_one(transaction, *pair)))
    }

    fn look(&mut self, keys: &[u64], _: usize) -> Result<u64> {
        let mut sum: u64 = 0;
        for key in keys {
            sum = sum.wrapping_add(self.get(*key).ok_or(GONE)?);
        }
        Ok(sum)
    }

    fn walk(&mut self, mut each: impl FnMut(u64, u64)) -> Result<()> {
        // SAFETY: (1).
        unsafe {
            if (*self.root()).height > 0 {
                self.walk_node((*self.root()).node, (*self.root()).height - 1, &mut each);
            }
        }
        Ok(())
    }
}
