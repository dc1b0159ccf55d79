//! The change of a sealed object by one batch: new ciphertext, new seals up to the root. The tree takes it once the batch is durable.

use super::PageBytes;
use super::tree::{ReadPage, Tree};
use crate::error::Result;
use crate::format::LINE;
use crate::format::seal::{ARITY, ROOT, Seal};
use crate::mutant::Mutant;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::IntoBytes;

/// Takes lines of the object: the page, the offset in it, the bytes.
pub type PutLines<'p> = &'p mut dyn FnMut(u64, u64, &[u8]);

/// See the module. Dropped, nothing has changed, and its nonces are never used again.
#[derive(Default)]
pub struct Change {
    /// Nodes that change, by level and index, with the seals in them that do.
    nodes: BTreeMap<(u32, u64), (Box<PageBytes>, BTreeSet<u64>)>,
    root: Option<Seal>,
}

impl Change {
    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The root's seal from this change on.
    #[must_use]
    pub fn root(&self) -> Option<&Seal> {
        self.root.as_ref()
    }

    /// Pages of the contents that change, with their seals from this change on.
    pub fn pages(&self) -> impl Iterator<Item = (u64, Seal)> + '_ {
        let leaves = self.nodes.range((0, 0)..=(0, u64::MAX));
        leaves.flat_map(|((_, index), (bytes, lines))| {
            lines.iter().map(move |line| (index * ARITY + line, Tree::seal_in(bytes, *line)))
        })
    }

    /// Seals `bytes`, which are encrypted in place, as page `page` of the contents.
    ///
    /// # Errors
    /// `Broken`: nodes above it are. The medium's. No random numbers.
    pub fn page(
        &mut self,
        tree: &mut Tree,
        page: u64,
        bytes: &mut PageBytes,
        read: ReadPage<'_>,
    ) -> Result<()> {
        let version = tree.seal(0, page, read)?.version.get() + 1;
        let sealer = tree.sealer.clone();
        let seal = if Mutant::LanePlain.is_on() {
            sealer.seal(page, version, &mut bytes.clone())?
        } else {
            sealer.seal(page, version, bytes)?
        };
        self.put(tree, 0, page, &seal, read)
    }

    /// Seals the nodes that changed, up to the root, and hands out the lines of the object that do.
    ///
    /// # Errors
    /// As for [`page`](Change::page).
    pub fn finish(&mut self, tree: &mut Tree, read: ReadPage<'_>, put: PutLines<'_>) -> Result<()> {
        let (sealer, top) = (tree.sealer.clone(), tree.shape.top());
        for level in 0..=top {
            let changed: Vec<u64> =
                self.nodes.range((level, 0)..=(level, u64::MAX)).map(|((_, index), _)| *index).collect();
            for index in changed {
                let is_top = level == top;
                let old = if is_top { tree.root } else { tree.seal(level + 1, index, read)? };
                let header = is_top.then_some(&tree.header);
                let Some((bytes, lines)) = self.nodes.get(&(level, index)) else { continue };
                let seal = sealer.seal_node((level, index), old.version.get() + 1, header, bytes)?;
                let page = tree.shape.page(level, index);
                for line in lines {
                    let at = (line * LINE) as usize;
                    put(page, line * LINE, &bytes[at..at + LINE as usize]);
                }
                if is_top {
                    self.root = Some(seal);
                } else {
                    self.put(tree, level + 1, index, &seal, read)?;
                }
            }
        }
        if let Some(root) = self.root.filter(|_| !Mutant::RootApart.is_on()) {
            put(tree.shape.key_page(), ROOT as u64, root.as_bytes());
        }
        Ok(())
    }

    /// The batch is durable.
    pub fn accept(self, tree: &mut Tree) {
        for ((level, index), (bytes, _)) in self.nodes {
            tree.nodes.insert(tree.shape.page(level, index), bytes);
        }
        if let Some(root) = self.root {
            tree.root = root;
        }
    }

    fn put(
        &mut self,
        tree: &mut Tree,
        level: u32,
        child: u64,
        seal: &Seal,
        read: ReadPage<'_>,
    ) -> Result<()> {
        let (index, line) = (child / ARITY, child % ARITY);
        if let Entry::Vacant(place) = self.nodes.entry((level, index)) {
            place.insert((Box::new(*tree.node(level, index, read)?), BTreeSet::new()));
        }
        if let Some((bytes, lines)) = self.nodes.get_mut(&(level, index)) {
            let at = (line * LINE) as usize;
            bytes[at..at + LINE as usize].copy_from_slice(&Tree::line(seal));
            lines.insert(line);
        }
        Ok(())
    }
}
