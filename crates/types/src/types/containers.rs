//! Layouts of containers in an object (FORMAT.md, section 10).

use super::Type;

pub(super) const VECTOR: u64 = 24;
pub(super) const RING: u64 = 32;
pub(super) const HASHED: u64 = 40;
pub(super) const ORDERED: u64 = 24;
pub(super) const EXTENSION: u64 = 24;
pub const EXTENSIONS: usize = 64;

pub const GROUP: usize = 16;
pub const EMPTY: u8 = 0xff;
pub const REMOVED: u8 = 0x80;

pub const KEYS: usize = 15;
pub const LEAST: usize = KEYS / 2;
/// More keys than 64 bits can address.
pub const LEVELS: usize = 16;

const NODE_HEAD: u64 = 8;

#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) value: u64,
    pub(super) size: u64,
    align: u64,
}

impl Pair {
    pub(super) fn of(key: &Type, value: &Type) -> Pair {
        let align = key.align.max(value.align);
        let at = key.size.next_multiple_of(value.align);
        Pair { value: at, size: (at + value.size).next_multiple_of(align), align }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub(super) value: u64,
    pub(super) bytes: u64,
    pub(super) align: u64,
}

impl Counted {
    pub(super) fn of(value: &Type) -> Counted {
        let align = value.align.max(8);
        let at = 8_u64.next_multiple_of(value.align);
        Counted { value: at, bytes: (at + value.size).next_multiple_of(align), align }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Slots {
    pub(super) pair: Pair,
    pub(super) count: u64,
    pub(super) first: u64,
    pub(super) bytes: u64,
    pub(super) align: u64,
}

impl Slots {
    pub(super) fn of(key: &Type, value: &Type, count: u64) -> Option<Slots> {
        let pair = Pair::of(key, value);
        let align = pair.align.max(GROUP as u64);
        let first = count.checked_next_multiple_of(align)?;
        let bytes = pair.size.checked_mul(count)?.checked_add(first)?;
        Some(Slots { pair, count, first, bytes, align })
    }

    pub(super) fn most(&self) -> u64 {
        self.count / 8 * 7
    }
}

#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) keys: u64,
    pub(super) values: u64,
    pub(super) children: u64,
    pub(super) align: u64,
    leaf: u64,
    inner: u64,
}

impl Node {
    pub(super) fn of(key: &Type, value: &Type) -> Node {
        let most = KEYS as u64;
        let align = key.align.max(value.align).max(4);
        let keys = NODE_HEAD.next_multiple_of(key.align);
        let values = (keys + most * key.size).next_multiple_of(value.align);
        let leaf = (values + most * value.size).next_multiple_of(align);
        let (children, align) = (leaf.next_multiple_of(8), align.max(8));
        let inner = (children + 8 * (most + 1)).next_multiple_of(align);
        Node { keys, values, children, align, leaf, inner }
    }

    pub(super) fn bytes(&self, level: u64) -> u64 {
        if level == 0 { self.leaf } else { self.inner }
    }
}
