//! Nodes in objects of one or several pools, linked by far pointers.

use super::{Descent, Links, Nodes, Side, Steps, Walk};
use anyhow::{Context, Result};
use indelible::{At, Far, Persist, Plain, Rights, Space};
use std::borrow::{Borrow, BorrowMut};
use std::cmp::Ordering;

/// A key of nodes in objects. Its far pointers are those of the node's object.
pub trait FarKey: Plain + Copy {
    type Sought: ?Sized;

    /// Compares the sought value with a key.
    fn order(sought: &Self::Sought, key: At<'_, Self>) -> Result<Ordering>;
}

impl FarKey for u64 {
    type Sought = u64;

    #[inline]
    fn order(sought: &u64, key: At<'_, u64>) -> Result<Ordering> {
        Ok(sought.cmp(key.value()))
    }
}

#[derive(Plain, Persist)]
#[repr(C)]
pub struct FarNode<K, V> {
    #[persist(target)]
    left: Far<FarNode<K, V>>,
    #[persist(target)]
    right: Far<FarNode<K, V>>,
    #[persist(target)]
    parent: Far<FarNode<K, V>>,
    red: u64,
    key: K,
    value: V,
}

impl<K, V> FarNode<K, V> {
    fn child(&self, side: Side) -> Far<FarNode<K, V>> {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }
}

/// A node's place: an object, and a pointer within it.
pub struct Place<K, V> {
    object: [u8; 16],
    at: Far<FarNode<K, V>>,
}

impl<K, V> Clone for Place<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Place<K, V> {}

impl<K, V> PartialEq for Place<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object && self.at == other.at
    }
}

/// A tree in objects of a space. Its root lies in the first; new nodes go to all in turn.
pub struct FarTree<K, V> {
    objects: Vec<[u8; 16]>,
    root: Far<Far<FarNode<K, V>>>,
}

pub struct FarNodes<'t, S, K, V> {
    tree: &'t FarTree<K, V>,
    space: S,
    made: usize,
}

const ROOT: &str = "tree";

impl<K, V> FarTree<K, V>
where
    K: FarKey + Sync + for<'h> Persist<'h>,
    V: Plain + Copy + Sync + for<'h> Persist<'h>,
{
    /// The tree of objects in the space for writing, made if missing. Far pointers lead from each
    /// to the others.
    pub fn open(space: &mut Space, objects: &[[u8; 16]]) -> Result<Self> {
        let first = objects.first().context("a tree needs an object")?;
        space.root_or_insert(first, ROOT, Far::<FarNode<K, V>>::null())?;
        Self::read(space, objects)
    }

    /// The tree of objects of a space, for reading.
    pub fn read(space: &Space, objects: &[[u8; 16]]) -> Result<Self> {
        let first = objects.first().context("a tree needs an object")?;
        let root = space.root::<Far<FarNode<K, V>>>(first, ROOT)?.here();
        Ok(FarTree { objects: objects.to_vec(), root })
    }

    /// Its nodes for reading, or, in an exclusively borrowed space, for changes.
    pub fn on<S: Borrow<Space>>(&self, space: S) -> FarNodes<'_, S, K, V> {
        FarNodes { tree: self, space, made: 0 }
    }
}

impl<S: Borrow<Space>, K: FarKey, V: Plain + Copy> FarNodes<'_, S, K, V> {
    fn top(&self) -> Result<Option<At<'_, FarNode<K, V>>>> {
        let root = self.space.borrow().get(&self.tree.objects[0], self.tree.root)?;
        Ok(root.follow(*root)?)
    }

    fn at(&self, place: Place<K, V>) -> Result<At<'_, FarNode<K, V>>> {
        Ok(self.space.borrow().get(&place.object, place.at)?)
    }
}

fn place_of<K, V>(at: At<'_, FarNode<K, V>>) -> Place<K, V> {
    Place { object: at.object(), at: at.here() }
}

fn follow<K: Plain, V: Plain>(
    at: At<'_, FarNode<K, V>>,
    to: Far<FarNode<K, V>>,
) -> Result<Option<Place<K, V>>> {
    if to.index() == 0 {
        return Ok((!to.is_null()).then(|| Place { object: at.object(), at: to }));
    }
    Ok(at.follow(to)?.map(place_of))
}

impl<S: Borrow<Space>, K: FarKey, V: Plain + Copy> Walk for FarNodes<'_, S, K, V> {
    type Place = Place<K, V>;
    type Key = K;
    type Sought = K::Sought;
    type Value = V;

    fn root(&self) -> Result<Option<Place<K, V>>> {
        Ok(self.top()?.map(place_of))
    }

    fn links(&self, place: Place<K, V>) -> Result<Links<Place<K, V>>> {
        let at = self.at(place)?;
        Ok(Links {
            parent: follow(at, at.parent)?,
            left: follow(at, at.left)?,
            right: follow(at, at.right)?,
            red: at.red != 0,
        })
    }

    fn entry(&self, place: Place<K, V>) -> Result<(K, V)> {
        let node = self.at(place)?.value();
        Ok((node.key, node.value))
    }

    fn descend(&self, sought: &K::Sought) -> Result<Descent<Place<K, V>>> {
        let Some(mut at) = self.top()? else { return Ok(Descent::Vacant(None)) };
        let mut steps = Steps::default();
        loop {
            steps.step()?;
            let key = at.part(&at.value().key).context("a node has its key")?;
            let side = match K::order(sought, key)? {
                Ordering::Equal => return Ok(Descent::Found(place_of(at))),
                Ordering::Less => Side::Left,
                Ordering::Greater => Side::Right,
            };
            match at.follow(at.child(side))? {
                Some(child) => at = child,
                None => return Ok(Descent::Vacant(Some((place_of(at), side)))),
            }
        }
    }
}

impl<S: BorrowMut<Space>, K: FarKey, V: Plain + Copy> FarNodes<'_, S, K, V> {
    fn far(&mut self, from: &[u8; 16], to: Option<Place<K, V>>) -> Result<Far<FarNode<K, V>>> {
        match to {
            None => Ok(Far::null()),
            Some(to) if to.object == *from => Ok(to.at),
            Some(to) => {
                let rights = Rights::READ | Rights::WRITE;
                Ok(self.space.borrow_mut().far(from, &to.object, to.at, rights)?)
            }
        }
    }

    fn node(&mut self, place: Place<K, V>) -> Result<&mut FarNode<K, V>> {
        Ok(self.space.borrow_mut().get_mut(&place.object, place.at)?)
    }
}

impl<S, K, V> Nodes for FarNodes<'_, S, K, V>
where
    S: BorrowMut<Space>,
    K: FarKey,
    V: Plain + Copy,
{
    fn set_root(&mut self, to: Option<Place<K, V>>) -> Result<()> {
        let (first, root) = (self.tree.objects[0], self.tree.root);
        let to = self.far(&first, to)?;
        *self.space.borrow_mut().get_mut(&first, root)? = to;
        Ok(())
    }

    fn change(&mut self, at: Place<K, V>, change: impl FnOnce(&mut Links<Place<K, V>>)) -> Result<()> {
        let mut links = self.links(at)?;
        change(&mut links);
        let [left, right, parent] =
            [links.left, links.right, links.parent].map(|to| self.far(&at.object, to));
        let node = self.node(at)?;
        (node.left, node.right, node.parent, node.red) = (left?, right?, parent?, links.red.into());
        Ok(())
    }

    fn set_value(&mut self, at: Place<K, V>, value: V) -> Result<()> {
        self.node(at)?.value = value;
        Ok(())
    }

    fn make(&mut self, key: K, value: V, parent: Option<Place<K, V>>) -> Result<Place<K, V>> {
        let object = self.tree.objects[self.made % self.tree.objects.len()];
        self.made += 1;
        let parent = self.far(&object, parent)?;
        let node = FarNode { left: Far::null(), right: Far::null(), parent, red: 1, key, value };
        Ok(Place { object, at: self.space.borrow_mut().create(&object, node)? })
    }

    fn discard(&mut self, at: Place<K, V>) -> Result<()> {
        Ok(self.space.borrow_mut().free(&at.object, at.at)?)
    }
}
