//! A red-black tree, written once for all places of nodes (S2.25): volatile memory, a mapped file,
//! and objects.
//!
//! Modules: `rules` (the algorithm), `volatile`, `file` and `far` (places of nodes).

mod far;
mod file;
mod rules;
mod volatile;

pub use far::{FarKey, FarNode, FarNodes, FarTree};
pub use file::FileNodes;
pub use rules::{check, first_from, insert, next, remove};
pub use volatile::VolatileNodes;

use anyhow::{Result, bail};

pub trait Walk {
    type Place: Copy + PartialEq;
    type Key: Copy;
    type Sought: ?Sized;
    type Value: Copy;

    fn root(&self) -> Result<Option<Self::Place>>;

    fn links(&self, at: Self::Place) -> Result<Links<Self::Place>>;

    fn entry(&self, at: Self::Place) -> Result<(Self::Key, Self::Value)>;

    /// A key's node, or the place for it.
    fn descend(&self, sought: &Self::Sought) -> Result<Descent<Self::Place>>;
}

pub trait Nodes: Walk {
    fn set_root(&mut self, to: Option<Self::Place>) -> Result<()>;

    /// Changes a node's neighbours and colour: one store.
    fn change(&mut self, at: Self::Place, change: impl FnOnce(&mut Links<Self::Place>)) -> Result<()>;

    fn set_value(&mut self, at: Self::Place, value: Self::Value) -> Result<()>;

    /// A new node, red, without children and unreferenced.
    fn make(
        &mut self,
        key: Self::Key,
        value: Self::Value,
        parent: Option<Self::Place>,
    ) -> Result<Self::Place>;

    /// Frees an unreferenced node.
    fn discard(&mut self, at: Self::Place) -> Result<()>;
}

/// A side of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl Side {
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Links<P> {
    /// `None`: the root.
    pub parent: Option<P>,
    pub left: Option<P>,
    pub right: Option<P>,
    /// Otherwise black.
    pub red: bool,
}

impl<P: Copy + PartialEq> Links<P> {
    #[must_use]
    pub fn child(&self, side: Side) -> Option<P> {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }

    pub fn child_mut(&mut self, side: Side) -> &mut Option<P> {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }

    pub fn side_of(&self, child: P) -> Result<Side> {
        match child {
            child if self.left == Some(child) => Ok(Side::Left),
            child if self.right == Some(child) => Ok(Side::Right),
            _ => bail!("the tree is damaged: a node is no child of its parent"),
        }
    }
}

/// The end of a search.
#[derive(Clone, Copy, Debug)]
pub enum Descent<P> {
    /// The key's node.
    Found(P),
    /// The node and side for the key; `None`: the tree is empty.
    Vacant(Option<(P, Side)>),
}

/// Most steps from top to bottom: twice the binary logarithm of more nodes than can exist.
const MOST_STEPS: usize = 128;

#[derive(Default)]
struct Steps(usize);

impl Steps {
    #[inline]
    fn step(&mut self) -> Result<()> {
        self.0 += 1;
        if self.0 > MOST_STEPS {
            bail!("the tree is damaged: a way down has no end");
        }
        Ok(())
    }
}
