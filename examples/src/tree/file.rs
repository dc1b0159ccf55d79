//! Nodes in a mapped file, without objects: pointers are numbers, which the program converts.

use super::{Descent, Links, Nodes, Side, Steps, Walk};
use crate::files::MappedFile;
use anyhow::{Context, Result, bail, ensure};
use std::cmp::Ordering;
use std::path::Path;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Nodes of one file. The first is its header: 0 is no node.
#[derive(Debug)]
pub struct FileNodes {
    file: MappedFile,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Node {
    key: u64,
    value: u64,
    parent: u64,
    children: [u64; 2],
    red: u64,
}

impl Node {
    fn links(&self) -> Links<u64> {
        let [left, right] = self.children.map(place);
        Links { parent: place(self.parent), left, right, red: self.red != 0 }
    }
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Header {
    magic: [u8; 8],
    root: u64,
    /// Nodes ever used, and this header.
    used: u64,
    /// Free nodes: the first, whose parent is the next.
    free: u64,
    reserved: [u64; 2],
}

const MAGIC: [u8; 8] = *b"RBTREE-1";
const SIZE: usize = size_of::<Node>();
const _: () = assert!(size_of::<Header>() == SIZE);
const DAMAGED: &str = "the tree is damaged: a pointer leads beyond its file";

fn place(pointer: u64) -> Option<u64> {
    (pointer != 0).then_some(pointer)
}

impl FileNodes {
    /// The tree in a file, made if missing.
    pub fn open(path: &Path) -> Result<FileNodes> {
        let mut nodes = FileNodes { file: MappedFile::open(path)? };
        let header = nodes.header_mut()?;
        if header.magic == [0; 8] {
            *header = Header { magic: MAGIC, root: 0, used: 1, free: 0, reserved: [0; 2] };
        }
        ensure!(header.magic == MAGIC, "{} has no tree", path.display());
        Ok(nodes)
    }

    /// Writes all changes to the file. A crash before may leave any of them, and no valid tree.
    pub fn sync(&self) -> Result<()> {
        self.file.sync()
    }

    fn header(&self) -> Result<&Header> {
        Header::ref_from_prefix(self.file.bytes()).map(|(header, _)| header).ok().context(DAMAGED)
    }

    fn header_mut(&mut self) -> Result<&mut Header> {
        Header::mut_from_prefix(self.file.bytes_mut()).map(|(header, _)| header).ok().context(DAMAGED)
    }

    #[inline]
    fn node(&self, at: u64) -> Result<&Node> {
        let start = (at as usize).wrapping_mul(SIZE);
        let bytes = self.file.bytes().get(start..start.wrapping_add(SIZE));
        bytes.and_then(|bytes| Node::ref_from_bytes(bytes).ok()).context(DAMAGED)
    }

    #[inline]
    fn node_mut(&mut self, at: u64) -> Result<&mut Node> {
        let start = (at as usize).wrapping_mul(SIZE);
        let bytes = self.file.bytes_mut().get_mut(start..start.wrapping_add(SIZE));
        bytes.and_then(|bytes| Node::mut_from_bytes(bytes).ok()).context(DAMAGED)
    }
}

impl Walk for FileNodes {
    type Place = u64;
    type Key = u64;
    type Sought = u64;
    type Value = u64;

    fn root(&self) -> Result<Option<u64>> {
        Ok(place(self.header()?.root))
    }

    fn links(&self, at: u64) -> Result<Links<u64>> {
        Ok(self.node(at)?.links())
    }

    fn entry(&self, at: u64) -> Result<(u64, u64)> {
        let node = self.node(at)?;
        Ok((node.key, node.value))
    }

    fn descend(&self, sought: &u64) -> Result<Descent<u64>> {
        let (mut at, mut above, mut steps) = (self.header()?.root, None, Steps::default());
        while at != 0 {
            steps.step()?;
            let node = self.node(at)?;
            let side = match sought.cmp(&node.key) {
                Ordering::Equal => return Ok(Descent::Found(at)),
                Ordering::Less => Side::Left,
                Ordering::Greater => Side::Right,
            };
            above = Some((at, side));
            at = node.children[side as usize];
        }
        Ok(Descent::Vacant(above))
    }
}

impl Nodes for FileNodes {
    fn set_root(&mut self, to: Option<u64>) -> Result<()> {
        self.header_mut()?.root = to.unwrap_or(0);
        Ok(())
    }

    fn change(&mut self, at: u64, change: impl FnOnce(&mut Links<u64>)) -> Result<()> {
        let node = self.node_mut(at)?;
        let mut links = node.links();
        change(&mut links);
        let number = |place: Option<u64>| place.unwrap_or(0);
        (node.parent, node.red) = (number(links.parent), links.red.into());
        node.children = [links.left, links.right].map(number);
        Ok(())
    }

    fn set_value(&mut self, at: u64, value: u64) -> Result<()> {
        self.node_mut(at)?.value = value;
        Ok(())
    }

    fn make(&mut self, key: u64, value: u64, parent: Option<u64>) -> Result<u64> {
        let header = *self.header()?;
        let at = match place(header.free) {
            Some(free) => {
                self.header_mut()?.free = self.node(free)?.parent;
                free
            }
            None => {
                let Some(end) = header.used.checked_add(1) else { bail!(DAMAGED) };
                self.file.grow_to((end as usize).saturating_mul(SIZE))?;
                self.header_mut()?.used = end;
                header.used
            }
        };
        *self.node_mut(at)? = Node { key, value, parent: parent.unwrap_or(0), children: [0; 2], red: 1 };
        Ok(at)
    }

    fn discard(&mut self, at: u64) -> Result<()> {
        self.node_mut(at)?.parent = self.header()?.free;
        self.header_mut()?.free = at;
        Ok(())
    }
}
