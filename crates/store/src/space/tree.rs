//! The table's trees: B+ trees of one-page nodes, with keys of two words and values of one.
//!
//! Invariants:
//! 1. All leaves are at level 0 and equally deep; the root's level is `height - 1`.
//! 2. In an inner node, keys of child `i + 1` and beyond are ≥ `slots[i + 1].key`, keys of child
//!    `i` are less. (The search ignores the key of slot 0.)
//! 3. No node is empty; an empty tree has no node.
//!
//! A node's level, place and keys must fit the way to it, so a walk ends, even in a forged tree.

use super::transaction::TableTransaction;
use crate::error::{Part, Result, StoreError};
use crate::format::node::{CAPACITY, Node, Slot};
use crate::format::root::{HEIGHT, TreeId};
use crate::format::{DATA, PAGE, TABLE_ROOT};
use std::sync::Arc;
use zerocopy::FromZeros;
use zerocopy::little_endian::{U32, U64};

/// A node with fewer slots merges with a neighbour if both fit in one.
const SPARSE: usize = CAPACITY / 3;

type Key = (u64, u64);

type Visit<'v> = dyn FnMut(u64, u16, &[Slot]) -> Result<()> + 'v;

/// For the parent to insert.
struct Split {
    right: Slot,
}

impl TableTransaction<'_> {
    fn node(&self, offset: u64, level: u16) -> Result<Arc<Node>> {
        let Some(nodes) = self.nodes.filter(|_| !self.pages.has(offset)) else {
            return self.read_node(offset, level);
        };
        if let Some(node) = nodes.get(offset).filter(|node| node.level.get() == level) {
            return Ok(node);
        }
        let node = self.read_node(offset, level)?;
        nodes.keep(offset, &node);
        Ok(node)
    }

    fn read_node(&self, offset: u64, level: u16) -> Result<Arc<Node>> {
        if !offset.is_multiple_of(PAGE) || !(DATA..self.pool_len()).contains(&offset) {
            return Err(StoreError::damaged(Part::Node, offset));
        }
        let mut node = Arc::new(Node::new_zeroed());
        self.pages.read_into(offset, Arc::make_mut(&mut node))?;
        if node.verify(self.seed, offset, level) {
            Ok(node)
        } else {
            Err(StoreError::damaged(Part::Node, offset))
        }
    }

    fn put_node(&mut self, mut node: Node) -> Result<()> {
        node.seal(self.seed);
        Ok(self.pages.write(node.own_offset.get(), &node)?)
    }

    fn top(&self, tree: TreeId) -> Option<(u64, u16)> {
        let root = &self.root.trees[tree as usize];
        (root.height.get() > 0).then(|| (root.node.get(), root.height.get() as u16 - 1))
    }

    fn set_top(&mut self, tree: TreeId, node: u64, height: u32) {
        let root = &mut self.root.trees[tree as usize];
        root.node = U64::new(node);
        root.height = U32::new(height);
    }

    fn adjust_count(&mut self, tree: TreeId, by: i64) {
        let root = &mut self.root.trees[tree as usize];
        root.count = U64::new(root.count.get().saturating_add_signed(by));
    }

    /// The value of `key`.
    pub fn get(&self, tree: TreeId, key: Key) -> Result<Option<u64>> {
        Ok(self.at_or_after(tree, key)?.filter(|slot| slot.key() == key).map(|slot| slot.value.get()))
    }

    /// The first slot with a key of at least `key`.
    pub fn at_or_after(&self, tree: TreeId, key: Key) -> Result<Option<Slot>> {
        self.seek(
            tree,
            |node| node.used().get(node.used().partition_point(|slot| slot.key() < key)).copied(),
            key,
            true,
        )
    }

    /// The last slot with a key below `key`.
    pub fn before(&self, tree: TreeId, key: Key) -> Result<Option<Slot>> {
        self.seek(
            tree,
            |node| node.used()[..node.used().partition_point(|slot| slot.key() < key)].last().copied(),
            key,
            false,
        )
    }

    /// Descends towards `key`; if the leaf has no answer, the nearest subtree on the `forward` side
    /// has. In a tree out of order the result may be on the wrong side.
    fn seek(
        &self,
        tree: TreeId,
        pick: impl Fn(&Node) -> Option<Slot>,
        key: Key,
        forward: bool,
    ) -> Result<Option<Slot>> {
        let Some((mut offset, mut level)) = self.top(tree) else { return Ok(None) };
        let mut beside = None;
        while level > 0 {
            let node = self.node(offset, level)?;
            let index = child_index(&node, key);
            let neighbour = if forward { Some(index + 1) } else { index.checked_sub(1) };
            if let Some(slot) = neighbour.and_then(|i| node.used().get(i)) {
                beside = Some((slot.value.get(), level - 1));
            }
            offset = node.slots[index].value.get();
            level -= 1;
        }
        if let Some(slot) = pick(&*self.node(offset, 0)?) {
            return Ok(Some(slot));
        }
        let Some((mut offset, mut level)) = beside else { return Ok(None) };
        loop {
            let node = self.node(offset, level)?;
            let slot = if forward { node.slots[0] } else { node.slots[node.len() - 1] };
            if level == 0 {
                return match (slot.key() >= key) == forward {
                    true => Ok(Some(slot)),
                    false => Err(StoreError::damaged(Part::Node, offset)),
                };
            }
            offset = slot.value.get();
            level -= 1;
        }
    }

    /// Calls `visit(node offset, level, slots)` for every node, parents first.
    pub fn walk(&self, tree: TreeId, visit: &mut Visit<'_>) -> Result<()> {
        match self.top(tree) {
            Some((offset, level)) => self.walk_node(offset, level, ((0, 0), None), visit),
            None => Ok(()),
        }
    }

    fn walk_node(
        &self,
        offset: u64,
        level: u16,
        (low, high): (Key, Option<Key>),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let node = self.read_node(offset, level)?;
        let keys = &node.used()[usize::from(level > 0)..];
        if keys.iter().any(|slot| slot.key() < low || high.is_some_and(|high| slot.key() >= high)) {
            return Err(StoreError::damaged(Part::Node, offset));
        }
        visit(offset, level, node.used())?;
        if level > 0 {
            for (index, slot) in node.used().iter().enumerate() {
                let from = if index == 0 { low } else { slot.key() };
                let to = node.used().get(index + 1).map(Slot::key).or(high);
                self.walk_node(slot.value.get(), level - 1, (from, to), visit)?;
            }
        }
        Ok(())
    }

    /// Inserts `key` or replaces its value.
    pub fn insert(&mut self, tree: TreeId, key: Key, value: u64) -> Result<()> {
        let slot = Slot::new(key, value);
        let Some((offset, level)) = self.top(tree) else {
            let offset = self.take_page()?;
            let mut leaf = Node::empty(0, offset);
            leaf.insert(0, slot);
            self.put_node(leaf)?;
            self.set_top(tree, offset, 1);
            self.adjust_count(tree, 1);
            return Ok(());
        };
        let (split, added) = self.insert_below(offset, level, slot)?;
        if added {
            self.adjust_count(tree, 1);
        }
        if let Some(split) = split {
            if u32::from(level) + 2 > HEIGHT {
                return Err(StoreError::damaged(Part::Root, TABLE_ROOT));
            }
            let top = self.take_page()?;
            let mut node = Node::empty(level + 1, top);
            node.insert(0, Slot::new((0, 0), offset));
            node.insert(1, split.right);
            self.put_node(node)?;
            self.set_top(tree, top, u32::from(level) + 2);
        }
        Ok(())
    }

    fn insert_below(&mut self, offset: u64, level: u16, slot: Slot) -> Result<(Option<Split>, bool)> {
        let before = self.node(offset, level)?;
        let mut added = true;
        let (index, slot) = if level == 0 {
            let index = before.used().partition_point(|s| s.key() < slot.key());
            if before.used().get(index).is_some_and(|s| s.key() == slot.key()) {
                let mut node = *before;
                node.slots[index] = slot;
                self.put_node(node)?;
                return Ok((None, false));
            }
            (index, slot)
        } else {
            let child = child_index(&before, slot.key());
            let (split, below) = self.insert_below(before.slots[child].value.get(), level - 1, slot)?;
            added = below;
            match split {
                None => return Ok((None, added)),
                Some(split) => (child + 1, split.right),
            }
        };
        let mut node = *before;
        if node.len() < CAPACITY {
            node.insert(index, slot);
            self.put_node(node)?;
            return Ok((None, added));
        }
        // Ascending insertion leaves full nodes.
        let cut = if index == CAPACITY { CAPACITY * 9 / 10 } else { CAPACITY / 2 };
        let mut right = Node::empty(level, self.take_page()?);
        node.move_tail(cut, &mut right);
        if index > cut {
            right.insert(index - cut, slot);
        } else {
            node.insert(index, slot);
        }
        let split = Split { right: Slot::new(right.slots[0].key(), right.own_offset.get()) };
        self.put_node(node)?;
        self.put_node(right)?;
        Ok((Some(split), added))
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, tree: TreeId, key: Key) -> Result<Option<u64>> {
        let Some((offset, level)) = self.top(tree) else { return Ok(None) };
        let Some(value) = self.remove_below(offset, level, key)? else { return Ok(None) };
        self.adjust_count(tree, -1);
        let (mut offset, mut level) = (offset, level);
        loop {
            let node: Node = self.pages.read(offset)?;
            if node.is_empty() {
                self.set_top(tree, 0, 0);
                self.give_page(offset)?;
                break;
            }
            if level == 0 || node.len() > 1 {
                self.set_top(tree, offset, u32::from(level) + 1);
                break;
            }
            self.give_page(offset)?;
            offset = node.slots[0].value.get();
            level -= 1;
        }
        Ok(Some(value))
    }

    fn remove_below(&mut self, offset: u64, level: u16, key: Key) -> Result<Option<u64>> {
        let mut node = *self.node(offset, level)?;
        if level == 0 {
            let Some(index) = node.used().iter().position(|slot| slot.key() == key) else {
                return Ok(None);
            };
            let slot = node.remove(index);
            self.put_node(node)?;
            return Ok(Some(slot.value.get()));
        }
        let index = child_index(&node, key);
        let child = node.slots[index].value.get();
        let Some(value) = self.remove_below(child, level - 1, key)? else { return Ok(None) };
        let child: Node = self.pages.read(child)?;
        if child.len() < SPARSE {
            let left = if index > 0 { index - 1 } else { 0 };
            if left + 1 < node.len() {
                self.merge(&mut node, left)?;
            } else if child.is_empty() {
                node.remove(index);
                self.give_page(child.own_offset.get())?;
                self.put_node(node)?;
            }
        }
        Ok(Some(value))
    }

    fn mergeable(&self, offset: u64, level: u16) -> Result<Node> {
        let node: Node = self.pages.read(offset)?;
        match node.is_empty() && self.pages.has(offset) {
            true => Ok(node),
            false => Ok(*self.node(offset, level)?),
        }
    }

    fn merge(&mut self, node: &mut Node, left: usize) -> Result<()> {
        let (a, b) = (node.slots[left].value.get(), node.slots[left + 1].value.get());
        let level = node.level.get().saturating_sub(1);
        let mut first = self.mergeable(a, level)?;
        let mut second = self.mergeable(b, level)?;
        if a == b {
            return Err(StoreError::damaged(Part::Node, a));
        }
        if first.len() + second.len() > CAPACITY {
            return Ok(());
        }
        if second.level.get() > 0 && !second.is_empty() {
            // Its first key was unused, and may be too high.
            second.slots[0] = Slot::new(node.slots[left + 1].key(), second.slots[0].value.get());
        }
        second.move_tail(0, &mut first);
        node.remove(left + 1);
        self.give_page(b)?;
        self.put_node(first)?;
        self.put_node(*node)
    }
}

/// The next key; `None`: `key` is the last.
pub fn next_key(key: Key) -> Option<Key> {
    match key.1.checked_add(1) {
        Some(low) => Some((key.0, low)),
        None => Some((key.0.checked_add(1)?, 0)),
    }
}

fn child_index(node: &Node, key: Key) -> usize {
    node.used().partition_point(|slot| slot.key() <= key).saturating_sub(1)
}

#[cfg(test)]
mod tests;
