//! The blocks that a root's value owns, found by its description, for programs without its type; or
//! why they are unknown.

use super::{Block, Heap, HeapError, HeapFinding, RawHeap, ReadHeap, Root};
use crate::types::walk::{Memory, Visitor, Walk};
use crate::types::{Description, Path};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    blocks: Vec<u64>,
    shared: Vec<(u64, u64)>,
    pub(crate) bytes: u64,
}

impl Reclaimed {
    pub(crate) fn count(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(crate) fn into_blocks(self) -> (Vec<u64>, Vec<(u64, u64)>) {
        (self.blocks, self.shared)
    }
}

struct View<'a> {
    memory: Memory<'a>,
    live: &'a dyn Fn(u64) -> Option<u64>,
    blocks: &'a dyn Fn() -> Result<Vec<Block>, HeapError>,
    roots: Vec<Root>,
    foreign: bool,
}

#[derive(Default)]
struct Found {
    base: u64,
    blocks: Vec<u64>,
    shared: Vec<(u64, u64)>,
    wrong: Option<HeapFinding>,
    opaque: Option<u64>,
    pointers: Vec<(u64, String)>,
}

impl Visitor for Found {
    fn block(&mut self, address: u64, _: &Path<'_, '_>) {
        self.blocks.push(address);
    }

    fn shared(&mut self, address: u64, counted: u64, found: u64) {
        if found < counted {
            self.shared.push((address, found));
        }
    }

    fn pointer(&mut self, _: u64, target: u64, path: &Path<'_, '_>) {
        self.pointers.push((target, path.to_string()));
    }

    fn opaque(&mut self, address: u64, _: u64, _: &str, _: &Path<'_, '_>) {
        self.opaque.get_or_insert(address.wrapping_sub(self.base));
    }

    fn wrong(&mut self, address: u64, what: &str, path: &Path<'_, '_>) {
        let offset = address.wrapping_sub(self.base);
        self.wrong.get_or_insert(HeapFinding { offset, what: format!("{path}: {what}") });
    }
}

impl View<'_> {
    fn reclaim(&self, name: &str) -> Result<Reclaimed, HeapError> {
        let cannot = |why: String| Err(HeapError::Irreclaimable { name: name.to_owned(), why });
        let Some(root) = self.roots.iter().find(|root| root.name == name) else {
            return Err(HeapError::RootMissing { name: name.to_owned() });
        };
        let Some(of) = root.description() else {
            return cannot("the heap has no description of its type that could be followed".to_owned());
        };
        let mut found = self.walk(&[(root, of)], true)?;
        let shared: HashSet<u64> = found.shared.iter().map(|(block, _)| *block).collect();
        found.blocks.retain(|block| !shared.contains(block));
        if let Some(at) = found.opaque {
            return cannot(format!("at offset {at:#x} are bytes that its description does not explain"));
        }
        let own: HashSet<u64> = found.blocks.iter().copied().collect();
        if self.foreign || !found.pointers.is_empty() {
            self.compare_with_others(root, &own, &found.pointers)?;
        }
        let bytes = found.blocks.iter().filter_map(|block| (self.live)(*block)).sum();
        Ok(Reclaimed { blocks: found.blocks, shared: found.shared, bytes })
    }

    fn walk(&self, roots: &[(&Root, Description)], releasing: bool) -> Result<Found, HeapError> {
        let found = Found { base: self.memory.base, ..Found::default() };
        let walk = Walk::new(self.memory, self.live, found);
        let mut walk = if releasing { walk.releasing() } else { walk };
        for (root, of) in roots {
            walk.root(&root.name, of, root.address as u64, root.size);
        }
        let found = walk.finish().visitor;
        match found.wrong {
            None => Ok(found),
            Some(HeapFinding { offset, what }) => Err(HeapError::Findings { offset, what, more: 0 }),
        }
    }

    fn compare_with_others(
        &self,
        root: &Root,
        own: &HashSet<u64>,
        pointers: &[(u64, String)],
    ) -> Result<(), HeapError> {
        let cannot = |why: String| Err(HeapError::Irreclaimable { name: root.name.clone(), why });
        let others = self.roots.iter().filter(|other| other.name != root.name);
        let (mut described, mut undescribed) = (Vec::new(), None);
        for other in others {
            match other.description() {
                Some(of) => described.push((other, of)),
                None => undescribed = Some(&other.name),
            }
        }
        if let (true, Some(other)) = (self.foreign, undescribed) {
            return cannot(format!("root {other:?} is not described: it may have the same blocks"));
        }
        let found = self.walk(&described, false)?;
        if let (true, Some(at)) = (self.foreign, found.opaque) {
            return cannot(format!("at offset {at:#x} are bytes that may refer to its blocks"));
        }
        let theirs: HashSet<u64> = found.blocks.into_iter().collect();
        if let Some(shared) = own.intersection(&theirs).min() {
            let offset = shared.wrapping_sub(self.memory.base);
            let what = format!("{}: a block has two owners", root.name);
            return Err(HeapError::Findings { offset, what, more: 0 });
        }
        if pointers.is_empty() {
            return Ok(());
        }
        let blocks = (self.blocks)()?;
        for (target, path) in pointers {
            let after = blocks.partition_point(|block| block.address as u64 <= *target);
            let around = after.checked_sub(1).map(|index| blocks[index]);
            let around = around.filter(|block| target - (block.address as u64) < block.size as u64);
            if let Some(block) = around.map(|block| block.address as u64)
                && !own.contains(&block)
                && !theirs.contains(&block)
            {
                return cannot(format!(
                    "{path} leads to a block that no value owns, perhaps the root's alone"
                ));
            }
        }
        Ok(())
    }
}

impl RawHeap {
    pub(crate) fn reclaimed(&self, memory: &[u8], name: &str, foreign: bool) -> Result<Reclaimed, HeapError> {
        let live = |address: u64| self.usable_size(address as usize).ok().map(|len| len as u64);
        let view = View {
            memory: Memory::of(memory),
            live: &live,
            blocks: &|| self.blocks().collect(),
            roots: self.roots()?,
            foreign,
        };
        view.reclaim(name)
    }
}

impl Heap {
    pub(crate) fn reclaimed(&self, name: &str) -> Result<Reclaimed, HeapError> {
        self.raw().reclaimed(self.attached().as_slice(), name, !self.trusted.allows(name))
    }
}

impl ReadHeap {
    pub(crate) fn reclaimed(&self, name: &str) -> Result<Reclaimed, HeapError> {
        self.raw().reclaimed(self.object().as_slice(), name, false)
    }
}
