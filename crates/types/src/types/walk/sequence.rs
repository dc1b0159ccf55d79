//! The walk over values in one block: text, vectors, and queues with two ends.

use super::super::containers::VECTOR;
use super::super::path::Path;
use super::{Description, TypeId, Visitor, Walk};

impl<'w, V: Visitor> Walk<'w, V> {
    fn block_of(&mut self, at: u64, size: u64, align: u64) -> Option<(u64, u64, u64)> {
        let [block, room, len] = self.memory.words(at)?;
        self.visitor.link(at);
        let right = match room {
            0 => len == 0 && self.is_nowhere(block),
            _ => len <= room && self.memory.holds(block, room.checked_mul(size)?, align),
        };
        right.then_some((block, room, len))
    }

    pub(super) fn text(&mut self, at: u64, path: &Path<'_, 'w>) -> bool {
        let Some((block, room, len)) = self.block_of(at, 1, 1) else { return false };
        if self.memory.get(block, len).is_some_and(|text| std::str::from_utf8(text).is_err()) {
            self.wrong((at, at), "text that is not UTF-8", path);
        }
        if room > 0 {
            self.claim(at, (block, room), path);
        }
        true
    }

    pub(super) fn vector(
        &mut self,
        of: &'w Description,
        element: TypeId,
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let (size, align) = (of.get(element).size, of.get(element).align);
        let Some((block, room, len)) = self.block_of(at, size, align) else { return false };
        if room > 0 && self.claim(at, (block, room * size), path) {
            self.inside(of, path, element, (block, len, Some(0)));
        }
        true
    }

    pub(super) fn ring(
        &mut self,
        of: &'w Description,
        element: TypeId,
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let (size, align) = (of.get(element).size, of.get(element).align);
        let Some((block, room, len)) = self.block_of(at, size, align) else { return false };
        let slot = match self.memory.words(at + VECTOR) {
            Some([slot]) if slot < room || slot == 0 => slot,
            _ => return false,
        };
        if room > 0 && self.claim(at, (block, room * size), path) {
            let before = len.min(room - slot);
            self.inside(of, path, element, (block + slot * size, before, Some(0)));
            self.inside(of, path, element, (block, len - before, Some(before)));
        }
        true
    }
}
