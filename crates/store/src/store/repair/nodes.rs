use crate::error::{Result, StoreError};
use crate::format::node::{CAPACITY, Node, Slot};
use crate::format::root::TreeRoot;
use crate::medium::Medium;
use std::borrow::Cow;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

/// Leaves room for insertions.
const FILL: usize = CAPACITY * 9 / 10;

pub(super) type Pair = ((u64, u64), u64);

pub(super) fn nodes_for(keys: usize) -> usize {
    let mut total = 0;
    let mut level = keys;
    while level > 0 {
        level = level.div_ceil(FILL);
        total += level;
        if level == 1 {
            break;
        }
    }
    total
}

/// `keys` ascend; not durable.
pub(super) fn build(
    medium: &dyn Medium,
    seed: u64,
    keys: &[Pair],
    pages: &mut dyn Iterator<Item = u64>,
) -> Result<TreeRoot> {
    let mut root = TreeRoot { count: U64::new(keys.len() as u64), ..TreeRoot::default() };
    let mut slots = Cow::Borrowed(keys);
    let mut level = 0;
    while !slots.is_empty() {
        let mut above: Vec<Pair> = Vec::with_capacity(slots.len().div_ceil(FILL));
        for part in slots.chunks(FILL) {
            let offset = pages.next().ok_or(StoreError::OutOfTablePages)?;
            let mut node = Node::empty(level, offset);
            for (index, (key, value)) in part.iter().enumerate() {
                node.insert(index, Slot::new(*key, *value));
            }
            node.seal(seed);
            medium.write(offset, node.as_bytes())?;
            above.push((if above.is_empty() { (0, 0) } else { part[0].0 }, offset));
        }
        level += 1;
        root.height = U32::new(u32::from(level));
        if let [(_, offset)] = above[..] {
            root.node = U64::new(offset);
            break;
        }
        slots = Cow::Owned(above);
    }
    Ok(root)
}
