use super::super::containers::{KEYS, LEVELS, Node};
use super::super::path::{Kept, Path, Step};
use super::{Description, TypeId, Visitor, Walk, Work};
use std::rc::Rc;

impl<'w, V: Visitor> Walk<'w, V> {
    pub(super) fn ordered(
        &mut self,
        of: &'w Description,
        (key, value): (TypeId, TypeId),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let Some([root, height, len]) = self.memory.words(at) else { return false };
        self.visitor.link(at);
        if height == 0 {
            return len == 0 && self.is_nowhere(root);
        }
        let node = Node::of(of.get(key), of.get(value));
        let right = height <= LEVELS as u64
            && (1..=self.memory.bytes.len() as u64).contains(&len)
            && self.memory.holds(root, node.bytes(height - 1), node.align);
        if right {
            self.later(of, path, Work::Node { slot: at, at: root, key, value, level: height - 1 });
        }
        right
    }

    pub(super) fn node(
        &mut self,
        kept: &Rc<Kept<'w>>,
        of: &'w Description,
        (slot, at): (u64, u64),
        (key, value): (TypeId, TypeId),
        level: u64,
    ) {
        let node = Node::of(of.get(key), of.get(value));
        let path = Path::behind(kept, Step::Inside);
        let head = match self.memory.holds(at, node.bytes(level), node.align) {
            true => self.memory.words::<1>(at).map(|[head]| (head & 0xffff, head >> 16 & 0xffff)),
            false => None,
        };
        let len = match head {
            Some((len, found)) if (1..=KEYS as u64).contains(&len) && found == level => len,
            _ => return self.wrong((slot, at), "a node of an ordered map", &path),
        };
        if !self.claim(slot, (at, node.bytes(level)), &path) {
            return;
        }
        let (key_size, value_size) = (of.get(key).size, of.get(value).size);
        for index in 0..len {
            self.value(of, key, at + node.keys + index * key_size, &Path::behind(kept, Step::Key(index)));
            self.value(
                of,
                value,
                at + node.values + index * value_size,
                &Path::behind(kept, Step::Value(index)),
            );
        }
        for index in (0..=len).take_while(|_| level > 0) {
            let slot = at + node.children + 8 * index;
            self.visitor.link(slot);
            if let Some([child]) = self.memory.words(slot) {
                let child = Work::Node { slot, at: child, key, value, level: level - 1 };
                self.pending.push((kept.clone(), of, child));
            }
        }
    }
}
