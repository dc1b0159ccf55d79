//! The walk over all values reachable from roots of known types.
//!
//! Each block is claimed once, so values in claimed blocks are disjoint. Blocks are visited from a
//! list: the recursion depth is that of types, not of data. Cost: the reachable non-plain bytes
//! once; behind pointers, once per type.
//!
//! The visitor is told of raw pointers; a [`following`](Walk::following) walk visits their
//! described targets, and reports only dangling ones.

mod sequence;
mod shared;
mod tree;

use super::containers::{EXTENSION, EXTENSIONS, GROUP, REMOVED, Slots};
use super::far::own;
use super::follow::{Follow, Look, Ranges, Target};
pub use super::memory::Memory;
use super::path::{Kept, Path, Step};
pub use super::visitor::Visitor;
use super::{Description, Kind, Pointer, TypeId, Variant};
use indelible_store::Mutant;
use shared::Owners;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

pub struct Walk<'w, V> {
    memory: Memory<'w>,
    live: &'w dyn Fn(u64) -> Option<u64>,
    visitor: V,
    owned: HashMap<u64, u64>,
    shared: Owners<'w>,
    follow: Option<Follow<'w>>,
    pending: Vec<(Rc<Kept<'w>>, &'w Description, Work)>,
}

pub struct Walked<V> {
    pub visitor: V,
    pub owned: HashMap<u64, u64>,
    pub followed: Ranges,
}

enum Work {
    /// `first`: the index of the first value, if any.
    Values {
        at: u64,
        count: u64,
        of: TypeId,
        first: Option<u64>,
    },
    Slots {
        at: u64,
        key: TypeId,
        value: TypeId,
        slots: Slots,
    },
    Node {
        slot: u64,
        at: u64,
        key: TypeId,
        value: TypeId,
        level: u64,
    },
}

const ROOT: u64 = 0;

impl<'w, V: Visitor> Walk<'w, V> {
    pub fn new(memory: Memory<'w>, live: &'w dyn Fn(u64) -> Option<u64>, visitor: V) -> Self {
        Walk {
            memory,
            live,
            visitor,
            owned: HashMap::new(),
            shared: Owners::default(),
            follow: None,
            pending: Vec::new(),
        }
    }

    pub fn following(self, around: &'w dyn Fn(u64) -> Option<(u64, u64)>) -> Self {
        Walk { follow: Some(Follow::new(around, self.memory.bytes.len() as u64)), ..self }
    }

    pub fn releasing(mut self) -> Self {
        self.shared.releasing = true;
        self
    }

    pub fn root(&mut self, name: &'w str, of: &'w Description, address: u64, size: u64) {
        let path = Path::root(name);
        let ty = of.get(of.root());
        let bytes = ty.size.max(1);
        if size != ty.size || !self.memory.holds(address, bytes, ty.align) {
            return self.wrong((ROOT, address), "a root is not where it could be", &path);
        }
        if self.claim(ROOT, (address, bytes), &path) {
            self.value(of, of.root(), address, &path);
        }
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((kept, of, work)) = self.pending.pop() {
            self.work(&kept, of, &work);
        }
    }

    pub fn finish(mut self) -> Walked<V> {
        while let Some(target) = self.follow.as_mut().and_then(|follow| follow.pending.pop()) {
            self.target(&target);
            self.settle();
        }
        for (address, counted, found) in self.shared.blocks() {
            self.visitor.shared(address, counted, found);
        }
        let followed = self.follow.map(|follow| follow.walked).unwrap_or_default();
        Walked { visitor: self.visitor, owned: self.owned, followed }
    }

    fn target(&mut self, target: &Target<'w>) {
        let Target { slot, at, description, of, .. } = *target;
        let (ty, path) = (description.get(of), Path::behind(&target.path, Step::Inside));
        let end = at.checked_add(ty.size.max(1));
        let Some(follow) = &mut self.follow else { return };
        let Some((block, len)) = (follow.around)(at) else { return };
        let wrong = if !at.is_multiple_of(ty.align) {
            "the pointer is not aligned as its target has to be"
        } else if let Some(end) = end.filter(|end| *end <= block + len) {
            match follow.look(target, end, self.owned.contains_key(&block)) {
                Look::Yes => return self.value(description, of, at, &path),
                Look::Done => return,
                Look::TooMany => "too many values of other types lie over the pointer's target",
            }
        } else {
            "the pointer leads to a block that ends within its target"
        };
        self.wrong((slot, slot), wrong, &path);
    }

    /// Once for the value at `place`, which may be visited again.
    fn wrong(&mut self, (place, address): (u64, u64), what: &'static str, path: &Path<'_, 'w>) {
        if place == ROOT || self.follow.as_mut().is_none_or(|follow| follow.tell(place, what)) {
            self.visitor.wrong(address, what, path);
        }
    }

    fn claim(&mut self, owner: u64, (address, bytes): (u64, u64), path: &Path<'_, 'w>) -> bool {
        let what = match ((self.live)(address), self.owned.entry(address)) {
            (None, _) => "the owned address is not that of a block in use",
            (Some(len), _) if len < bytes => "a block is smaller than its value",
            (Some(_), Entry::Vacant(entry)) => {
                entry.insert(owner);
                self.visitor.block(address, path);
                return true;
            }
            // A value seen by a pointer first, then by its block's owner.
            (Some(_), Entry::Occupied(entry))
                if self.follow.is_some() && owner != ROOT && *entry.get() == owner =>
            {
                return false;
            }
            (Some(_), Entry::Occupied(_)) => "a block has two owners",
        };
        self.wrong((owner, address), what, path);
        false
    }

    fn inside(
        &mut self,
        of: &'w Description,
        path: &Path<'_, 'w>,
        ty: TypeId,
        (at, count, first): (u64, u64, Option<u64>),
    ) {
        match of.get(ty).plain {
            true => self.visitor.plain(at, count * of.get(ty).size, path),
            false => self.later(of, path, Work::Values { at, count, of: ty, first }),
        }
    }

    fn later(&mut self, of: &'w Description, path: &Path<'_, 'w>, work: Work) {
        self.pending.push((path.keep(), of, work));
    }

    fn work(&mut self, kept: &Rc<Kept<'w>>, of: &'w Description, work: &Work) {
        match *work {
            Work::Values { at, count, of: ty, first } => {
                let size = of.get(ty).size;
                for index in 0..count {
                    let step = first.map_or(Step::Inside, |first| Step::Index(first + index));
                    self.value(of, ty, at + index * size, &Path::behind(kept, step));
                }
            }
            Work::Slots { at, key, value, slots } => self.slots(kept, of, at, (key, value), slots),
            Work::Node { slot, at, key, value, level } => {
                self.node(kept, of, (slot, at), (key, value), level)
            }
        }
    }

    fn value(&mut self, of: &'w Description, id: TypeId, at: u64, path: &Path<'_, 'w>) {
        let ty = of.get(id);
        if ty.plain {
            return self.visitor.plain(at, ty.size, path);
        }
        let right = match &ty.kind {
            Kind::Scalar { valid, .. } => {
                self.visitor.plain(at, ty.size, path);
                self.memory.get(at, ty.size).is_some_and(|bytes| valid.holds(bytes))
            }
            Kind::Pointer { how, to, .. } => self.pointer(of, (*how, *to), at, path),
            Kind::Array { element, count } => {
                let size = of.get(*element).size;
                for index in 0..*count {
                    self.value(of, *element, at + index * size, &path.then(Step::Index(index)));
                }
                true
            }
            Kind::Struct { fields, .. } => {
                let mut end = 0;
                for field in fields {
                    self.visitor.plain(at + end, field.offset - end, path);
                    self.value(of, field.of, at + field.offset, &path.then(Step::Field(&field.name)));
                    end = field.offset + of.get(field.of).size;
                }
                self.visitor.plain(at + end, ty.size - end, path);
                true
            }
            Kind::Enum { tag, variants, by_tag, .. } => self.variant(of, (*tag, variants, by_tag), at, path),
            Kind::Alias { of: inner, .. } => {
                self.value(of, *inner, at, path);
                true
            }
            Kind::Opaque { name, .. } => {
                self.visitor.opaque(at, ty.size, name, path);
                true
            }
            Kind::Optional(value) => match self.memory.get(at, 1) {
                Some([0]) => true,
                Some([1]) => {
                    self.value(of, *value, at + of.get(*value).align, path);
                    true
                }
                _ => false,
            },
            Kind::Text => self.text(at, path),
            Kind::Vector(element) => self.vector(of, *element, at, path),
            Kind::Ring(element) => self.ring(of, *element, at, path),
            Kind::Boxed { value, optional } => self.boxed(of, *value, *optional, at, path),
            Kind::Shared { value, optional } => self.owner(of, (*value, *optional), at, path),
            Kind::Lock { value, .. } => self.boxed(of, *value, false, at + 8, path),
            Kind::Hashed { key, value, .. } => self.hashed(of, (*key, *value), at, path),
            Kind::Ordered { key, value } => self.ordered(of, (*key, *value), at, path),
            Kind::Extensions => self.extensions(at, path),
        };
        if !right {
            self.wrong((at, at), "this is no value of its type", path);
        }
    }

    fn pointer(
        &mut self,
        of: &'w Description,
        (how, to): (Pointer, Option<TypeId>),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let Some([word]) = self.memory.words(at) else { return false };
        if word == 0 {
            return true;
        }
        let target = match how {
            Pointer::Far => {
                self.visitor.far(at, word, path);
                match own(word) {
                    Some(offset) => self.memory.base.wrapping_add(offset),
                    None => return true,
                }
            }
            Pointer::Relative => at.wrapping_add(word),
            Pointer::Mutable | Pointer::Constant | Pointer::Atomic => {
                self.visitor.link(at);
                word
            }
        };
        if let Some(follow) = &mut self.follow {
            if !follow.meet(at) {
                return true;
            }
            if let (Some(to), Some(_)) = (to, (follow.around)(target)) {
                let path = path.keep();
                follow.pending.push(Target { slot: at, path, at: target, description: of, of: to });
                return true;
            }
        }
        self.visitor.pointer(at, target, path);
        true
    }

    fn variant(
        &mut self,
        of: &'w Description,
        (tag, variants, by_tag): (u64, &'w [Variant], &[(u128, usize)]),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let Some(bytes) = self.memory.get(at, tag) else { return false };
        let tag = bytes.iter().rev().fold(0, |tag, byte| tag << 8 | u128::from(*byte));
        let Ok(index) = by_tag.binary_search_by_key(&tag, |(tag, _)| *tag) else { return false };
        let variant = &variants[by_tag[index].1];
        let path = path.then(Step::Variant(&variant.name));
        for field in &variant.fields {
            self.value(of, field.of, at + field.offset, &path.then(Step::Field(&field.name)));
        }
        true
    }

    fn is_nowhere(&self, address: u64) -> bool {
        address == 0 || address == self.memory.base
    }

    fn boxed(
        &mut self,
        of: &'w Description,
        value: TypeId,
        optional: bool,
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let (bytes, align) = (of.get(value).size.max(1), of.get(value).align);
        self.visitor.link(at);
        match self.memory.words(at) {
            Some([0]) if optional => true,
            Some([block]) if self.memory.holds(block, bytes, align) => {
                if self.claim(at, (block, bytes), path) {
                    self.inside(of, path, value, (block, 1, None));
                }
                true
            }
            _ => false,
        }
    }

    fn extensions(&mut self, at: u64, path: &Path<'_, 'w>) -> bool {
        let Some([mut block]) = self.memory.words(at) else { return false };
        self.visitor.link(at);
        if self.is_nowhere(block) {
            return true;
        }
        let mut slot = at;
        // A cyclic chain ends where a block is claimed again.
        for _ in 0..EXTENSIONS {
            let head = self.memory.words(block).filter(|_| self.memory.holds(block, EXTENSION, 8));
            let Some([next, size]) = head else { return false };
            if size < EXTENSION || !self.memory.holds(block, size, 8) {
                self.wrong((block, block), "an extension of another size than it can have", path);
                return true;
            }
            self.visitor.link(block);
            self.visitor.plain(block + EXTENSION, size - EXTENSION, path);
            if !self.claim(slot, (block, size), path) || next == 0 || Mutant::ChainUnwalked.is_on() {
                return true;
            }
            (slot, block) = (block, next);
        }
        self.wrong((at, at), "more extensions than a value can have", path);
        true
    }

    fn hashed(
        &mut self,
        of: &'w Description,
        (key, value): (TypeId, TypeId),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let Some([block, count, len, left, _]) = self.memory.words(at) else { return false };
        self.visitor.link(at);
        if count == 0 {
            return len == 0 && left == 0 && self.is_nowhere(block);
        }
        let Some(slots) = Slots::of(of.get(key), of.get(value), count) else { return false };
        let right = count.is_power_of_two()
            && count >= GROUP as u64
            && len.checked_add(left).is_some_and(|most| most <= slots.most())
            && self.memory.holds(block, slots.bytes, slots.align);
        if !right || !self.claim(at, (block, slots.bytes), path) {
            return right;
        }
        let control = self.memory.get(block, count).unwrap_or_default();
        if control.iter().filter(|byte| **byte < REMOVED).count() as u64 != len {
            self.wrong((at, at), "a hash table with another number of keys", path);
        }
        if V::PLAIN || !of.get(key).plain || !of.get(value).plain {
            self.later(of, path, Work::Slots { at: block, key, value, slots });
        }
        true
    }

    fn slots(
        &mut self,
        kept: &Rc<Kept<'w>>,
        of: &'w Description,
        at: u64,
        (key, value): (TypeId, TypeId),
        slots: Slots,
    ) {
        let control = self.memory.get(at, slots.count).unwrap_or_default();
        let in_use = (0..).zip(control).filter(|(_, byte)| **byte < REMOVED);
        for (nth, (index, _)) in (0..).zip(in_use) {
            let slot = at + slots.first + index * slots.pair.size;
            self.value(of, key, slot, &Path::behind(kept, Step::Key(nth)));
            self.value(of, value, slot + slots.pair.value, &Path::behind(kept, Step::Value(nth)));
        }
    }
}
