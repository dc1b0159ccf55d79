//! Roots with values in changed bytes, for comparing tools. Raw pointers are not followed.

use super::read::ReadHeap;
use super::root::Root;
use crate::error::Result;
use crate::types::Path;
use crate::types::walk::{Memory, Visitor, Walk};
use std::collections::HashMap;
use std::ops::Range;

/// Whether bytes of a root changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Bytes of one of its values changed.
    Yes,
    No,
    /// Not the root's own; but its type is undescribed, or a value is damaged.
    Unknown,
}

#[derive(Default)]
struct Wrong(bool);

impl Visitor for Wrong {
    fn wrong(&mut self, _: u64, _: &str, _: &Path<'_, '_>) {
        self.0 = true;
    }
}

impl ReadHeap {
    /// The roots, and whether `changed` returns true for a range of one of their values. Not part
    /// of the stable interface.
    ///
    /// # Errors
    /// `Damaged`.
    #[doc(hidden)]
    pub fn touched(&self, changed: &mut dyn FnMut(Range<u64>) -> bool) -> Result<Vec<(Root, Touched)>> {
        let memory = Memory::of(self.object().as_slice());
        let blocks: Result<HashMap<u64, u64>> =
            self.blocks().map(|block| block.map(|block| (block.address as u64, block.size as u64))).collect();
        let blocks = blocks?;
        let live = |address: u64| blocks.get(&address).copied();
        let mut is_changed = |address: u64, len: u64| {
            let start = address - memory.base;
            changed(start..start + len)
        };
        let mut found = Vec::new();
        for root in self.roots()? {
            let touched = if is_changed(root.address as u64, root.size) {
                Touched::Yes
            } else if let Ok(of) = root.read_description() {
                let mut walk = Walk::new(memory, &live, Wrong::default());
                walk.root(&root.name, &of, root.address as u64, root.size);
                let walked = walk.finish();
                let mut owned = walked.owned.keys().filter_map(|address| Some((*address, live(*address)?)));
                match owned.any(|(address, len)| is_changed(address, len)) {
                    true => Touched::Yes,
                    false if walked.visitor.0 => Touched::Unknown,
                    false => Touched::No,
                }
            } else {
                Touched::Unknown
            };
            found.push((root, touched));
        }
        Ok(found)
    }
}
