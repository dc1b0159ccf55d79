//! Differences of two states of a sealed object. Nonces are unique, so equal seals mean equal pages
//! or subtrees; only differing ones are read.

use super::PageBytes;
use super::key_page::KeyPage;
use super::tree::{ReadPage, Tree};
use crate::error::Result;
use crate::format::seal::{ARITY, KEY_PAGE, Seal, Shape};
use crate::format::{LINE, PAGE};
use crate::mutant::Mutant;
use std::collections::BTreeMap;

type Node = Box<PageBytes>;

trait States {
    fn seals(&self, level: u32) -> u64;
    fn older(&mut self, level: u32, index: u64) -> Result<Option<Node>>;
    fn newer(&mut self, level: u32, index: u64) -> Result<Node>;
    fn equal(&mut self, _level: u32, _index: u64) {}
}

fn compare(states: &mut dyn States, (level, index): (u32, u64), pages: &mut Vec<u64>) -> Result<()> {
    let (older, newer) = (states.older(level, index)?, states.newer(level, index)?);
    for below in index * ARITY..((index + 1) * ARITY).min(states.seals(level)) {
        let at = (below % ARITY * LINE) as usize;
        let line = at..at + LINE as usize;
        let same = older.as_ref().is_some_and(|older| older[line.clone()] == newer[line]);
        match (same, level.checked_sub(1)) {
            (true, None) => {}
            (true, Some(level)) => states.equal(level, below),
            (false, None) if Mutant::PlaintextKept.is_on() => {}
            (false, None) => pages.push(below),
            (false, Some(level)) => compare(states, (level, below), pages)?,
        }
    }
    Ok(())
}

struct Verified<'t, 'r> {
    older: &'t mut Tree,
    newer: &'t mut Tree,
    read: ReadPage<'r>,
}

impl Verified<'_, '_> {
    fn was_absent(&self, level: u32, index: u64) -> bool {
        let tree = &self.older;
        let parent = || tree.nodes.get(&tree.shape.page(level + 1, index / ARITY));
        let at = (index % ARITY * LINE) as usize;
        level < tree.shape.top()
            && parent().is_some_and(|node| node[at..at + LINE as usize].iter().all(|byte| *byte == 0))
    }
}

impl States for Verified<'_, '_> {
    fn seals(&self, level: u32) -> u64 {
        seals(self.newer.shape, level)
    }

    fn older(&mut self, level: u32, index: u64) -> Result<Option<Node>> {
        let known = self.older.nodes.get(&self.older.shape.page(level, index)).cloned();
        Ok(known.or_else(|| self.was_absent(level, index).then(|| Box::new([0; PAGE as usize]))))
    }

    fn newer(&mut self, level: u32, index: u64) -> Result<Node> {
        Ok(Box::new(*self.newer.node(level, index, self.read)?))
    }

    fn equal(&mut self, level: u32, index: u64) {
        let page = self.newer.shape.page(level, index);
        let Some(node) = self.older.nodes.remove(&page) else { return };
        self.newer.nodes.insert(page, node);
        if let Some(below) = level.checked_sub(1) {
            let end = seals(self.newer.shape, level);
            (index * ARITY..((index + 1) * ARITY).min(end)).for_each(|index| self.equal(below, index));
        }
    }
}

impl Tree {
    /// The tree of another state of the object, with this key page and a verified top.
    pub(crate) fn renewed(&self, page: &KeyPage, read: ReadPage<'_>) -> Result<Tree> {
        Tree::begin(page, self.sealer.clone(), self.signer.as_ref(), read)
    }

    /// Whether seal ID, key, size and object ID are equal.
    pub(crate) fn is_of_same_object(&self, other: &Tree) -> bool {
        let id = |tree: &Tree| tree.identity.map(|identity| identity.id);
        self.header == other.header && id(self) == id(other)
    }

    /// Pages with seals other than in `older`, a tree of the same object, ascending, and perhaps
    /// pages that `older` never read. Takes over equal verified nodes of `older`.
    ///
    /// # Errors
    /// `Broken`, the medium's.
    pub(crate) fn changed_since(&mut self, older: &mut Tree, read: ReadPage<'_>) -> Result<Vec<u64>> {
        let (top, mut pages) = (self.shape.top(), Vec::new());
        compare(&mut Verified { older, newer: self, read }, (top, 0), &mut pages)?;
        Ok(pages)
    }
}

/// An object's unverified seals, read without its key.
pub struct Outline<'r> {
    shape: Shape,
    id: [u8; 16],
    read: ReadPage<'r>,
    nodes: BTreeMap<(u32, u64), Node>,
}

impl<'r> Outline<'r> {
    /// The outline of an object with `pages` pages in its extent.
    ///
    /// # Errors
    /// `Broken` or `Unknown` of the key page; the medium's.
    pub fn open(pages: u64, read: ReadPage<'r>) -> Result<Outline<'r>> {
        let mut bytes = Box::new([0; PAGE as usize]);
        read(KEY_PAGE, &mut bytes)?;
        let page = KeyPage::read(bytes, pages)?;
        Ok(Outline { shape: page.shape()?, id: page.header().id, read, nodes: BTreeMap::new() })
    }

    /// Pages sealed since `older`, ascending; `None`: the seal IDs differ.
    pub fn changed_since(&mut self, older: &mut Outline<'_>) -> Result<Option<Vec<u64>>> {
        if self.id != older.id {
            return Ok(None);
        }
        let (level, mut pages) = (self.shape.top().min(older.shape.top()), Vec::new());
        let nodes = self.shape.nodes(level).max(older.shape.nodes(level));
        for index in 0..nodes {
            compare(&mut Unproved { older, newer: self }, (level, index), &mut pages)?;
        }
        Ok(Some(pages))
    }

    fn node(&mut self, level: u32, index: u64) -> Result<Node> {
        if let Some(node) = self.nodes.get(&(level, index)) {
            return Ok(node.clone());
        }
        let mut node = Box::new([0; PAGE as usize]);
        let there = index < self.shape.nodes(level);
        let absent = there && level < self.shape.top() && {
            let at = (index % ARITY * LINE) as usize;
            let parent = self.node(level + 1, index / ARITY)?;
            parent[at..at + size_of::<Seal>()].iter().all(|byte| *byte == 0)
        };
        if there && !absent {
            (self.read)(self.shape.page(level, index), &mut node)?;
        }
        if level > 0 {
            self.nodes.insert((level, index), node.clone());
        }
        Ok(node)
    }
}

struct Unproved<'o, 'n, 'a, 'b> {
    older: &'o mut Outline<'a>,
    newer: &'n mut Outline<'b>,
}

impl States for Unproved<'_, '_, '_, '_> {
    fn seals(&self, level: u32) -> u64 {
        seals(self.older.shape, level).max(seals(self.newer.shape, level))
    }

    fn older(&mut self, level: u32, index: u64) -> Result<Option<Node>> {
        self.older.node(level, index).map(Some)
    }

    fn newer(&mut self, level: u32, index: u64) -> Result<Node> {
        self.newer.node(level, index)
    }
}

fn seals(shape: Shape, level: u32) -> u64 {
    level.checked_sub(1).map_or(shape.content(), |below| shape.nodes(below))
}
