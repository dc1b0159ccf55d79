//! Secondary indexes: trees in their own objects, whose keys are far pointers to the data.

use crate::tree::{FarKey, FarTree, Walk, first_from, insert, next, remove};
use anyhow::{Context, Result};
use indelible::{At, Far, Persist, Plain, Pool, Rights, Space};
use std::cmp::Ordering;
use std::path::PathBuf;

pub(super) type Texts<'t> = (&'t [u8], &'t [u8]);

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
pub(super) struct Record {
    #[persist(target)]
    pub(super) at: Far<u8>,
    pub(super) key_len: u64,
    pub(super) value_len: u64,
}

impl Record {
    #[inline]
    pub(super) fn texts<'s>(self, start: At<'s, u8>) -> Result<Texts<'s>> {
        let len = self.key_len.saturating_add(self.value_len);
        let bytes = start.slice(usize::try_from(len)?)?;
        bytes.split_at_checked(self.key_len as usize).context("the store is damaged: a key has no end")
    }

    pub(super) fn of(space: &mut Space, home: &[u8; 16], data: &[u8; 16], own: Record) -> Result<Record> {
        let at = space.far(home, data, own.at, Rights::READ | Rights::WRITE)?;
        Ok(Record { at, ..own })
    }
}

/// A secondary index's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By unique keys.
    Keys,
    /// By values, then keys.
    Values,
}

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct ByKey {
    record: Record,
}

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct ByValue {
    record: Record,
}

/// Owned bytes, as [`FarKey::Sought`] has no lifetime.
struct Sought {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Sought {
    fn of((key, value): Texts<'_>) -> Sought {
        Sought { key: key.to_vec(), value: value.to_vec() }
    }
}

fn texts<'s, T>(record: Record, at: At<'s, T>) -> Result<Texts<'s>> {
    record.texts(at.follow(record.at)?.context("the store is damaged: a key has no bytes")?)
}

impl FarKey for ByKey {
    type Sought = Sought;

    fn order(sought: &Sought, at: At<'_, Self>) -> Result<Ordering> {
        let (key, _) = texts(at.record, at)?;
        Ok(sought.key.as_slice().cmp(key))
    }
}

impl FarKey for ByValue {
    type Sought = Sought;

    fn order(sought: &Sought, at: At<'_, Self>) -> Result<Ordering> {
        let (key, value) = texts(at.record, at)?;
        Ok(sought.value.as_slice().cmp(value).then(sought.key.as_slice().cmp(key)))
    }
}

trait OfRecord: FarKey<Sought = Sought> + Sync + for<'h> Persist<'h> {
    fn new(record: Record) -> Self;
    fn record(self) -> Record;
}

impl OfRecord for ByKey {
    fn new(record: Record) -> Self {
        ByKey { record }
    }

    fn record(self) -> Record {
        self.record
    }
}

impl OfRecord for ByValue {
    fn new(record: Record) -> Self {
        ByValue { record }
    }

    fn record(self) -> Record {
        self.record
    }
}

/// A secondary index of one pool's data: users without access to it find none of its data by the
/// others.
pub(super) struct Secondary {
    pub(super) pool: PathBuf,
    object: [u8; 16],
    tree: Tree,
}

enum Tree {
    ByKey(FarTree<ByKey, u64>),
    ByValue(FarTree<ByValue, u64>),
}

impl Order {
    pub(super) fn object_name(self, store: &str) -> String {
        match self {
            Order::Keys => format!("{store}.by-key"),
            Order::Values => format!("{store}.by-value"),
        }
    }
}

impl Secondary {
    pub(super) fn open(space: &mut Space, pool: &Pool, object: [u8; 16], order: Order) -> Result<Secondary> {
        let tree = match order {
            Order::Keys => Tree::ByKey(FarTree::open(space, &[object])?),
            Order::Values => Tree::ByValue(FarTree::open(space, &[object])?),
        };
        Ok(Secondary { pool: pool.path().to_owned(), object, tree })
    }

    pub(super) fn read(space: &Space, pool: &Pool, object: [u8; 16], order: Order) -> Result<Secondary> {
        let tree = match order {
            Order::Keys => Tree::ByKey(FarTree::read(space, &[object])?),
            Order::Values => Tree::ByValue(FarTree::read(space, &[object])?),
        };
        Ok(Secondary { pool: pool.path().to_owned(), object, tree })
    }

    pub(super) fn order(&self) -> Order {
        match &self.tree {
            Tree::ByKey(_) => Order::Keys,
            Tree::ByValue(_) => Order::Values,
        }
    }

    pub(super) fn add(
        &self,
        space: &mut Space,
        texts: Texts<'_>,
        (data, own): (&[u8; 16], Record),
    ) -> Result<()> {
        let record = Record::of(space, &self.object, data, own)?;
        let sought = Sought::of(texts);
        match &self.tree {
            Tree::ByKey(tree) => insert(&mut tree.on(space), &sought, ByKey::new(record), 0).map(drop),
            Tree::ByValue(tree) => insert(&mut tree.on(space), &sought, ByValue::new(record), 0).map(drop),
        }
    }

    pub(super) fn remove(&self, space: &mut Space, texts: Texts<'_>) -> Result<()> {
        let sought = Sought::of(texts);
        match &self.tree {
            Tree::ByKey(tree) => remove(&mut tree.on(space), &sought).map(drop),
            Tree::ByValue(tree) => remove(&mut tree.on(space), &sought).map(drop),
        }
    }

    pub(super) fn scan<'s>(&'s self, space: &'s Space, from: Texts<'_>) -> Result<Scan<'s>> {
        match &self.tree {
            Tree::ByKey(tree) => scan(space, self.object, tree, from),
            Tree::ByValue(tree) => scan(space, self.object, tree, from),
        }
    }
}

pub(super) type Scan<'s> = Box<dyn Iterator<Item = Result<Texts<'s>>> + 's>;

fn scan<'s, K: OfRecord>(
    space: &'s Space,
    object: [u8; 16],
    tree: &'s FarTree<K, u64>,
    from: Texts<'_>,
) -> Result<Scan<'s>> {
    let nodes = tree.on(space);
    // All of a tree's records lie in its object.
    let home = space.home(&object)?;
    let mut at = first_from(&nodes, &Sought::of(from))?;
    let step = move |place| {
        let record = nodes.entry(place)?.0.record();
        Ok((record.texts(home.get(record.at)?)?, next(&nodes, place)?))
    };
    Ok(Box::new(std::iter::from_fn(move || {
        Some(step(at.take()?).map(|(texts, next)| {
            at = next;
            texts
        }))
    })))
}

pub(super) struct Merged<'s> {
    order: Order,
    scans: Vec<std::iter::Peekable<Scan<'s>>>,
}

impl<'s> Merged<'s> {
    pub(super) fn new(order: Order, scans: Vec<Scan<'s>>) -> Merged<'s> {
        Merged { order, scans: scans.into_iter().map(Iterator::peekable).collect() }
    }
}

impl<'s> Iterator for Merged<'s> {
    type Item = Result<Texts<'s>>;

    fn next(&mut self) -> Option<Result<Texts<'s>>> {
        let order = self.order;
        let rank = |(key, value): Texts<'s>| match order {
            Order::Keys => (key, value),
            Order::Values => (value, key),
        };
        // Errors come first.
        let mut heads = self.scans.iter_mut().enumerate().filter_map(|(number, scan)| {
            let head = scan.peek()?.as_ref().ok().copied().map(rank);
            Some((head, number))
        });
        let first = heads.next()?;
        let (_, number) = heads.fold(first, std::cmp::min);
        self.scans[number].next()
    }
}
