//! A red-black tree, written once for all places where its nodes may lie (S2.25): volatile memory,
//! a mapped file, and objects.
//!
//! Modules: `rules` (the algorithm), `volatile`, `file` and `far` (places for nodes).

mod far;
mod file;
mod rules;
mod volatile;

pub use far::{FarKey, FarNode, FarNodes, FarTree};
pub use file::FileNodes;
pub use rules::{check, first_from, insert, next, remove};
pub use volatile::VolatileNodes;

use anyhow::{Result, bail};

/// Nodes that lie somewhere, to be read.
pub trait Walk {
    /// Where a node is.
    type Place: Copy + PartialEq;
    /// That by which a node is found.
    type Key: Copy;
    /// That by which a key is found.
    type Sought: ?Sized;
    /// The part of a node beside its key.
    type Value: Copy;

    /// The node at the top.
    ///
    /// # Errors
    /// These of every method: the tree is damaged, or cannot be reached.
    fn root(&self) -> Result<Option<Self::Place>>;

    /// The nodes around a node, and its colour.
    fn links(&self, at: Self::Place) -> Result<Links<Self::Place>>;

    /// Key and value of a node.
    fn entry(&self, at: Self::Place) -> Result<(Self::Key, Self::Value)>;

    /// The node of a key, or the place for it.
    fn descend(&self, sought: &Self::Sought) -> Result<Descent<Self::Place>>;
}

/// Nodes that lie somewhere, to be changed.
pub trait Nodes: Walk {
    /// Has another node be the one at the top.
    ///
    /// # Errors
    /// These of every method: as for [`Walk`], or the node cannot be stored to.
    fn set_root(&mut self, to: Option<Self::Place>) -> Result<()>;

    /// Changes what is around a node, and its colour: one store.
    fn change(&mut self, at: Self::Place, change: impl FnOnce(&mut Links<Self::Place>)) -> Result<()>;

    /// Has a node have another value.
    fn set_value(&mut self, at: Self::Place, value: Self::Value) -> Result<()>;

    /// A new node, red and without children, that nothing leads to.
    fn make(
        &mut self,
        key: Self::Key,
        value: Self::Value,
        parent: Option<Self::Place>,
    ) -> Result<Self::Place>;

    /// Gives the place of a node back that nothing leads to.
    fn discard(&mut self, at: Self::Place) -> Result<()>;
}

/// A side of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Lesser keys.
    Left,
    /// Greater keys.
    Right,
}

impl Side {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

/// The nodes around a node, and its colour.
#[derive(Clone, Copy, Debug)]
pub struct Links<P> {
    /// None: it is the root.
    pub parent: Option<P>,
    /// The child with lesser keys.
    pub left: Option<P>,
    /// The child with greater keys.
    pub right: Option<P>,
    /// Whether it is red, and not black.
    pub red: bool,
}

impl<P: Copy + PartialEq> Links<P> {
    /// The child on a side.
    #[must_use]
    pub fn child(&self, side: Side) -> Option<P> {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }

    /// The child on a side, to be changed.
    pub fn child_mut(&mut self, side: Side) -> &mut Option<P> {
        match side {
            Side::Left => &mut self.left,
            Side::Right => &mut self.right,
        }
    }

    /// The side on which a child is.
    ///
    /// # Errors
    /// It is on none: the tree is damaged.
    pub fn side_of(&self, child: P) -> Result<Side> {
        match child {
            child if self.left == Some(child) => Ok(Side::Left),
            child if self.right == Some(child) => Ok(Side::Right),
            _ => bail!("the tree is damaged: a node is no child of its parent"),
        }
    }
}

/// Where a search ends.
#[derive(Clone, Copy, Debug)]
pub enum Descent<P> {
    /// The node with the key.
    Found(P),
    /// Where a node with it would be: below this one. `None`: the tree is empty.
    Vacant(Option<(P, Side)>),
}

/// Steps from the top to the bottom, at most: twice the binary logarithm of more nodes than there
/// can be.
const MOST_STEPS: usize = 128;

/// Counts steps down, so that no damaged tree is walked for ever.
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
