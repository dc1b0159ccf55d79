//! The walk over values with several owners. The first owner claims the block; the others are
//! counted. An owner is refused beyond the block's count, or if it sees another type.

use super::super::containers::Counted;
use super::super::path::Path;
use super::{Description, TypeId, Visitor, Walk};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub(super) struct Owners<'w> {
    blocks: HashMap<u64, Block<'w>>,
    slots: HashSet<u64>,
    alike: HashSet<[(usize, TypeId); 2]>,
    /// Visit a value only if it has no owner elsewhere.
    pub(super) releasing: bool,
}

struct Block<'w> {
    of: &'w Description,
    value: TypeId,
    counted: u64,
    found: u64,
}

impl Owners<'_> {
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.blocks.iter().map(|(address, block)| (*address, block.counted, block.found))
    }

    fn are_alike(&mut self, one: (&Description, TypeId), two: (&Description, TypeId)) -> bool {
        let key = |(of, id): (&Description, TypeId)| (std::ptr::from_ref(of).addr(), id);
        if key(one) == key(two) || self.alike.contains(&[key(one), key(two)]) {
            return true;
        }
        let Some(alike) = one.0.alike(one.1, two.0, two.1) else { return false };
        let ((here, _), (there, _)) = (key(one), key(two));
        self.alike.extend(alike.into_iter().map(|(one, two)| [(here, one), (there, two)]));
        true
    }
}

impl<'w, V: Visitor> Walk<'w, V> {
    pub(super) fn owner(
        &mut self,
        of: &'w Description,
        (value, optional): (TypeId, bool),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let block = Counted::of(of.get(value));
        self.visitor.link(at);
        let address = match self.memory.words(at) {
            Some([0]) if optional => return true,
            Some([address]) if self.memory.holds(address, block.bytes, block.align) => address,
            _ => return false,
        };
        if !self.shared.slots.insert(at) {
            return true;
        }
        if let Some(what) = self.count(of, value, (at, address, block.bytes), path) {
            self.wrong((at, address), what, path);
        }
        true
    }

    fn count(
        &mut self,
        of: &'w Description,
        value: TypeId,
        (at, address, bytes): (u64, u64, u64),
        path: &Path<'_, 'w>,
    ) -> Option<&'static str> {
        let (first, counted, found) = match self.shared.blocks.get_mut(&address) {
            Some(block) => {
                let (first, counted, found) = ((block.of, block.value), block.counted, block.found + 1);
                block.found = found;
                if !self.shared.are_alike(first, (of, value)) {
                    return Some("the owners of a block have it for values of different types");
                }
                (false, counted, found)
            }
            None => {
                if !self.claim(at, (address, bytes), path) {
                    return None;
                }
                let counted = self.memory.words(address).map_or(0, |[count]| count);
                self.shared.blocks.insert(address, Block { of, value, counted, found: 1 });
                (true, counted, 1)
            }
        };
        if found > counted {
            return Some("a block has more owners than it counts");
        }
        let now = if self.shared.releasing { found == counted } else { first };
        if now {
            let inside = Counted::of(of.get(value)).value;
            self.visitor.plain(address, inside, path);
            self.inside(of, path, value, (address + inside, 1, None));
        }
        None
    }
}
