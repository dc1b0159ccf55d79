//! A cache of verified nodes. The holder of the table [`clear`](Nodes::clear)s it at others'
//! batches or after losing track of the lane, and [`forget`](Nodes::forget)s the pages of its own.

use crate::format::node::Node;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

const LIMIT: usize = 1024;

/// The cache of an open pool, under the table's lock.
#[derive(Debug)]
pub struct Nodes {
    kept: RefCell<HashMap<u64, Arc<Node>>>,
    limit: usize,
}

impl Default for Nodes {
    fn default() -> Self {
        Nodes::of(LIMIT)
    }
}

impl Nodes {
    fn of(limit: usize) -> Self {
        Nodes { kept: RefCell::default(), limit }
    }

    pub(super) fn get(&self, offset: u64) -> Option<Arc<Node>> {
        self.kept.borrow().get(&offset).cloned()
    }

    pub(super) fn keep(&self, offset: u64, node: &Arc<Node>) {
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= self.limit {
            // Leaves in use return.
            kept.retain(|_, node| node.level.get() > 0);
            if kept.len() > self.limit / 2 {
                kept.clear();
            }
        }
        kept.insert(offset, node.clone());
    }

    /// Drops the changed node at `offset`.
    pub fn forget(&self, offset: u64) {
        self.kept.borrow_mut().remove(&offset);
    }

    /// Drops all.
    pub fn clear(&self) {
        self.kept.borrow_mut().clear();
    }

    /// Nodes kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.borrow().len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_nodes_is_bounded() {
        bounded(16);
        if !cfg!(miri) {
            bounded(LIMIT);
        }
    }

    fn bounded(limit: usize) {
        let nodes = Nodes::of(limit);
        let limit = limit as u64;
        for offset in 0..3 * limit {
            nodes.keep(offset, &Arc::new(Node::empty(0, offset)));
            assert!(nodes.len() as u64 <= limit && nodes.get(offset).is_some());
        }
        for offset in 0..limit / 2 {
            nodes.keep(offset, &Arc::new(Node::empty(1, offset)));
        }
        for offset in limit..3 * limit {
            nodes.keep(offset, &Arc::new(Node::empty(0, offset)));
            assert!((0..limit / 2).all(|inner| nodes.get(inner).is_some()), "{offset}");
        }
        nodes.forget(3 * limit - 1);
        assert!(nodes.get(3 * limit - 1).is_none());
        nodes.clear();
        assert!(nodes.is_empty());
    }
}
