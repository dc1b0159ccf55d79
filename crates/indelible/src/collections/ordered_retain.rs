#![allow(unsafe_code)]

use super::ordered_map::PBTreeMap;
use super::persist::Persist;
use super::place::change;
use super::tree_iter::{Edge, checked};

impl<'h, K: Persist<'h> + Ord, V: Persist<'h>> PBTreeMap<'h, K, V> {
    /// Drops keys and values for which `keep` is false, in key order. A panic leaves the rest.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let bounds = self.tree.bounds();
        // At most one look per key, even if the order is inconsistent.
        let mut left = self.tree.len();
        let mut edge = (left > 0).then(|| Edge::end(&self.tree, &bounds, false));
        while let Some(here) = edge.as_mut().filter(|_| left > 0) {
            left -= 1;
            let Some((node, index)) = here.next(&bounds) else { return };
            // SAFETY: a key and its value, in a map that is borrowed exclusively.
            let stays = unsafe {
                let key = checked(node.key(index), &bounds);
                change(node.value(index), |value| keep(key, value))
            };
            if !stays {
                let pair = self.tree.remove(&mut here.path_to(node, index));
                // Nodes were joined: searches again by the removed key.
                edge = (self.tree.height() > 0)
                    .then(|| Edge::new(&self.tree, &bounds, |key| key.cmp(&pair.0).is_lt()));
                drop(pair);
            }
        }
    }
}
