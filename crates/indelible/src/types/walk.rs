//! The walk over all values that are reachable from roots whose types are known.
//!
//! Each block is claimed by its address, once. As no two blocks in use of a heap overlap, which the heap's own
//! check finds out, values that claimed their blocks have no byte in common. The content of a block is looked
//! at later, from a list: the depth of the walk is that of types, not of the data. Cost: the bytes of all that is
//! reachable and not plain, once.

use super::containers::{EXTENSION, EXTENSIONS, GROUP, KEYS, LEVELS, Node, REMOVED, Slots};
use super::path::{Kept, Path, Step};
use super::{Description, Kind, Pointer, TypeId};
use indelible_store::Mutant;
use std::collections::HashSet;
use std::rc::Rc;

/// Bytes of an object, and where they are mapped, or would be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory<'m> {
    pub(crate) base: u64,
    pub(crate) bytes: &'m [u8],
}

impl<'m> Memory<'m> {
    /// The bytes of an object where they are mapped.
    pub(crate) fn of(bytes: &'m [u8]) -> Memory<'m> {
        Memory { base: bytes.as_ptr().addr() as u64, bytes }
    }

    /// `len` bytes at an address, if they lie in the object.
    pub(crate) fn get(&self, address: u64, len: u64) -> Option<&'m [u8]> {
        let start = address.checked_sub(self.base)?;
        let end = start.checked_add(len)?;
        self.bytes.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    fn words<const N: usize>(&self, address: u64) -> Option<[u64; N]> {
        let bytes = self.get(address, 8 * N as u64)?;
        let word = |index: usize| bytes[8 * index..8 * index + 8].try_into().map_or(0, u64::from_le_bytes);
        Some(std::array::from_fn(word))
    }

    /// Whether `len` bytes at `address`, at least one, lie in the object, aligned.
    fn holds(&self, address: u64, len: u64, align: u64) -> bool {
        len > 0 && address.is_multiple_of(align) && self.get(address, len).is_some()
    }
}

/// Somebody who is told what the walk comes across.
pub(crate) trait Visitor {
    /// A block that a value owns.
    fn block(&mut self, _address: u64, _path: &Path<'_, '_>) {}

    /// An address other than zero that nobody owns by it; `at`: where it lies.
    fn pointer(&mut self, _at: u64, _target: u64, _path: &Path<'_, '_>) {}

    /// Bytes at an address that no description explains.
    fn opaque(&mut self, _address: u64, _len: u64) {}

    /// Something at an address that cannot be.
    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>);
}

/// A walk under way.
pub(crate) struct Walk<'w, V> {
    memory: Memory<'w>,
    /// Bytes of the block in use that begins at an address.
    live: &'w dyn Fn(u64) -> Option<u64>,
    visitor: V,
    owned: HashSet<u64>,
    pending: Vec<(Rc<Kept<'w>>, &'w Description, Work)>,
}

/// Values in a block that was claimed.
enum Work {
    Values { at: u64, count: u64, of: TypeId, inside: bool },
    Slots { at: u64, key: TypeId, value: TypeId, slots: Slots },
    Node { at: u64, key: TypeId, value: TypeId, level: u64 },
}

impl<'w, V: Visitor> Walk<'w, V> {
    pub(crate) fn new(memory: Memory<'w>, live: &'w dyn Fn(u64) -> Option<u64>, visitor: V) -> Self {
        Walk { memory, live, visitor, owned: HashSet::new(), pending: Vec::new() }
    }

    /// Goes through a root: a block of `size` bytes with a value of the described type.
    pub(crate) fn root(&mut self, name: &'w str, of: &'w Description, address: u64, size: u64) {
        let path = Path::root(name);
        let ty = of.get(of.root());
        let bytes = ty.size.max(1);
        if size != ty.size || !self.memory.holds(address, bytes, ty.align) {
            return self.visitor.wrong(address, "a root is not where it could be", &path);
        }
        if self.claim(address, bytes, &path) {
            self.value(of, of.root(), address, &path);
        }
        while let Some((kept, of, work)) = self.pending.pop() {
            self.work(&kept, of, &work);
        }
    }

    /// The visitor, and the addresses of all blocks that were claimed.
    pub(crate) fn finish(self) -> (V, HashSet<u64>) {
        (self.visitor, self.owned)
    }

    /// Claims a block of at least `bytes` bytes.
    fn claim(&mut self, address: u64, bytes: u64, path: &Path<'_, 'w>) -> bool {
        let what = match (self.live)(address) {
            None => "the owned address is not that of a block in use",
            Some(len) if len < bytes => "a block is smaller than its value",
            Some(_) if !self.owned.insert(address) => "a block has two owners",
            Some(_) => {
                self.visitor.block(address, path);
                return true;
            }
        };
        self.visitor.wrong(address, what, path);
        false
    }

    fn later(&mut self, of: &'w Description, path: &Path<'_, 'w>, work: Work) {
        self.pending.push((path.keep(), of, work));
    }

    fn work(&mut self, kept: &Rc<Kept<'w>>, of: &'w Description, work: &Work) {
        match *work {
            Work::Values { at, count, of: ty, inside } => {
                let size = of.get(ty).size;
                for index in 0..count {
                    let step = if inside { Step::Inside } else { Step::Index(index) };
                    self.value(of, ty, at + index * size, &Path::behind(kept, step));
                }
            }
            Work::Slots { at, key, value, slots } => self.slots(kept, of, at, (key, value), slots),
            Work::Node { at, key, value, level } => self.node(kept, of, at, (key, value), level),
        }
    }

    /// A value that lies in the object.
    fn value(&mut self, of: &'w Description, id: TypeId, at: u64, path: &Path<'_, 'w>) {
        let ty = of.get(id);
        if ty.plain {
            return;
        }
        let right = match &ty.kind {
            Kind::Scalar { valid, .. } => {
                self.memory.get(at, ty.size).is_some_and(|bytes| valid.holds(bytes))
            }
            Kind::Pointer { how, .. } => self.pointer(*how, at, path),
            Kind::Array { element, count } => {
                let size = of.get(*element).size;
                for index in 0..*count {
                    self.value(of, *element, at + index * size, &path.then(Step::Index(index)));
                }
                true
            }
            Kind::Struct { fields, .. } => {
                for field in fields {
                    self.value(of, field.of, at + field.offset, &path.then(Step::Field(&field.name)));
                }
                true
            }
            Kind::Enum { tag, variants, .. } => self.variant(of, (*tag, variants), at, path),
            Kind::Alias { of: inner, .. } => {
                self.value(of, *inner, at, path);
                true
            }
            Kind::Opaque { .. } => {
                self.visitor.opaque(at, ty.size);
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
            Kind::Boxed { value, optional } => self.boxed(of, *value, *optional, at, path),
            Kind::Lock { value, .. } => self.boxed(of, *value, false, at + 8, path),
            Kind::Hashed { key, value, .. } => self.hashed(of, (*key, *value), at, path),
            Kind::Ordered { key, value } => self.ordered(of, (*key, *value), at, path),
            Kind::Extensions => self.extensions(at, path),
        };
        if !right {
            self.visitor.wrong(at, "this is no value of its type", path);
        }
    }

    fn pointer(&mut self, how: Pointer, at: u64, path: &Path<'_, 'w>) -> bool {
        let Some([word]) = self.memory.words(at) else { return false };
        let target = if how == Pointer::Relative { at.wrapping_add(word) } else { word };
        if word != 0 {
            self.visitor.pointer(at, target, path);
        }
        true
    }

    fn variant(
        &mut self,
        of: &'w Description,
        (tag, variants): (u64, &'w [super::Variant]),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let Some(bytes) = self.memory.get(at, tag) else { return false };
        let is = |variant: &&super::Variant| variant.number.to_le_bytes()[..bytes.len()] == *bytes;
        let Some(variant) = variants.iter().find(is) else { return false };
        let path = path.then(Step::Variant(&variant.name));
        for field in &variant.fields {
            self.value(of, field.of, at + field.offset, &path.then(Step::Field(&field.name)));
        }
        true
    }

    /// Whether an address is that of a container without a block.
    fn is_nowhere(&self, address: u64) -> bool {
        address == 0 || address == self.memory.base
    }

    /// Address and length of a vector's block, if the words are a vector.
    fn block_of(&self, at: u64, size: u64, align: u64) -> Option<(u64, u64, u64)> {
        let [block, room, len] = self.memory.words(at)?;
        let right = match room {
            0 => len == 0 && self.is_nowhere(block),
            _ => len <= room && self.memory.holds(block, room.checked_mul(size)?, align),
        };
        right.then_some((block, room, len))
    }

    fn text(&mut self, at: u64, path: &Path<'_, 'w>) -> bool {
        let Some((block, room, len)) = self.block_of(at, 1, 1) else { return false };
        if self.memory.get(block, len).is_some_and(|text| std::str::from_utf8(text).is_err()) {
            self.visitor.wrong(at, "text that is not UTF-8", path);
        }
        if room > 0 {
            self.claim(block, room, path);
        }
        true
    }

    fn vector(&mut self, of: &'w Description, element: TypeId, at: u64, path: &Path<'_, 'w>) -> bool {
        let (size, align) = (of.get(element).size, of.get(element).align);
        let Some((block, room, len)) = self.block_of(at, size, align) else { return false };
        if room > 0 && self.claim(block, room * size, path) && !of.get(element).plain {
            self.later(of, path, Work::Values { at: block, count: len, of: element, inside: false });
        }
        true
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
        match self.memory.words(at) {
            Some([0]) if optional => true,
            Some([block]) if self.memory.holds(block, bytes, align) => {
                if self.claim(block, bytes, path) && !of.get(value).plain {
                    self.later(of, path, Work::Values { at: block, count: 1, of: value, inside: true });
                }
                true
            }
            _ => false,
        }
    }

    /// A chain of extensions. Their bytes own nothing, whatever version of a program made them.
    fn extensions(&mut self, at: u64, path: &Path<'_, 'w>) -> bool {
        let Some([mut block]) = self.memory.words(at) else { return false };
        if self.is_nowhere(block) {
            return true;
        }
        // A chain that leads back to one of its blocks ends where that is claimed again.
        for _ in 0..EXTENSIONS {
            let head = self.memory.words(block).filter(|_| self.memory.holds(block, EXTENSION, 8));
            let Some([next, size]) = head else { return false };
            if size < EXTENSION || !self.memory.holds(block, size, 8) {
                self.visitor.wrong(block, "an extension of another size than it can have", path);
                return true;
            }
            if !self.claim(block, size, path) || next == 0 || Mutant::ChainUnwalked.is_on() {
                return true;
            }
            block = next;
        }
        self.visitor.wrong(at, "more extensions than a value can have", path);
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
        if count == 0 {
            return len == 0 && left == 0 && self.is_nowhere(block);
        }
        let Some(slots) = Slots::of(of.get(key), of.get(value), count) else { return false };
        let right = count.is_power_of_two()
            && count >= GROUP as u64
            && len.checked_add(left).is_some_and(|most| most <= slots.most())
            && self.memory.holds(block, slots.bytes, slots.align);
        if !right || !self.claim(block, slots.bytes, path) {
            return right;
        }
        let control = self.memory.get(block, count).unwrap_or_default();
        if control.iter().filter(|byte| **byte < REMOVED).count() as u64 != len {
            self.visitor.wrong(at, "a hash table with another number of keys", path);
        }
        if !of.get(key).plain || !of.get(value).plain {
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

    fn ordered(
        &mut self,
        of: &'w Description,
        (key, value): (TypeId, TypeId),
        at: u64,
        path: &Path<'_, 'w>,
    ) -> bool {
        let Some([root, height, len]) = self.memory.words(at) else { return false };
        if height == 0 {
            return len == 0 && self.is_nowhere(root);
        }
        let node = Node::of(of.get(key), of.get(value));
        let right = height <= LEVELS as u64
            && (1..=self.memory.bytes.len() as u64).contains(&len)
            && self.memory.holds(root, node.bytes(height - 1), node.align);
        if right {
            self.later(of, path, Work::Node { at: root, key, value, level: height - 1 });
        }
        right
    }

    /// A node, which is claimed only now: the node above it has its address.
    fn node(
        &mut self,
        kept: &Rc<Kept<'w>>,
        of: &'w Description,
        at: u64,
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
            _ => return self.visitor.wrong(at, "a node of an ordered map", &path),
        };
        if !self.claim(at, node.bytes(level), &path) {
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
            if let Some([child]) = self.memory.words(at + node.children + 8 * index) {
                self.pending.push((kept.clone(), of, Work::Node { at: child, key, value, level: level - 1 }));
            }
        }
    }
}
