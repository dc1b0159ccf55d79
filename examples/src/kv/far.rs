//! The store in objects: far pointers lead from the index to data in any object of any pool, with
//! its own rights.

use super::orders::{Merged, Order, Record, Secondary};
use super::table::{self, EMPTY, Found, REMOVED};
use anyhow::{Context, Result, ensure};
use indelible::{At, CreateOptions, ErrorKind, Far, Home, Persist, Plain, Pool, Space};
use std::path::{Path, PathBuf};

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Index {
    #[persist(target)]
    slots: Far<Slot>,
    room: u64,
    len: u64,
    used: u64,
    seed: u64,
    orders: u64,
}

#[derive(Plain, Persist, Clone, Copy)]
#[repr(C)]
struct Slot {
    hash: u64,
    record: Record,
}

const NO_SLOT: Slot = Slot { hash: EMPTY, record: Record { at: Far::null(), key_len: 0, value_len: 0 } };

/// A store whose index is an object; keys and values are in the objects that
/// [`insert`](FarStore::insert) names. Secondary indexes lie in their data's pool.
pub struct FarStore {
    space: Space,
    pool: Pool,
    name: String,
    index: [u8; 16],
    root: Far<Index>,
    orders: Vec<Order>,
    secondary: Vec<Secondary>,
    data: Vec<Data>,
    /// Data of other pools, unreferenced once the index is durable.
    freed: Vec<([u8; 16], Far<u8>)>,
}

struct Data {
    object: [u8; 16],
    pool: PathBuf,
}

const SIZE: u64 = 1 << 20;
const ROOT: &str = "index";

/// An object without addresses, made if missing.
fn attach(space: &mut Space, pool: &Pool, name: &str) -> Result<[u8; 16]> {
    let options = CreateOptions::new(SIZE).position_independent(true);
    match pool.create_with(name, &options) {
        Err(error) if error.kind() != ErrorKind::Exists => Err(error.into()),
        _ => Ok(space.attach(pool, name)?),
    }
}

impl FarStore {
    /// Opens the store `name` of a pool for changes, or makes it, with secondary indexes of these
    /// orders, the same in all later calls.
    pub fn open(pool: &Pool, name: &str, orders: &[Order]) -> Result<FarStore> {
        let mut space = Space::new();
        space.add(pool);
        let index = attach(&mut space, pool, name)?;
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let bits = orders.iter().fold(0, |bits, order| bits | 1 << *order as u64);
        let none = Index { slots: Far::null(), room: 0, len: 0, used: 0, seed, orders: bits };
        let made_with = space.root_or_insert(&index, ROOT, none)?.orders;
        ensure!(made_with == bits, "the store {name} was made with other orders");
        let root = space.root::<Index>(&index, ROOT)?.here();
        Ok(FarStore {
            space,
            pool: pool.clone(),
            name: name.to_owned(),
            index,
            root,
            orders: orders.to_vec(),
            secondary: Vec::new(),
            data: Vec::new(),
            freed: Vec::new(),
        })
    }

    /// Opens the store `name` of the first pool for reading. All pools may have its data; a lookup
    /// of data elsewhere, or unreadable data, is an error, and secondary indexes omit it.
    pub fn read(pools: &[Pool], name: &str) -> Result<FarStore> {
        let mut space = Space::new();
        pools.iter().for_each(|pool| space.add(pool));
        let pool = pools.first().context("a store needs a pool")?.clone();
        let index = pool.stat(name)?.id;
        space.attach_read(&index)?;
        let root = space.root::<Index>(&index, ROOT)?;
        let (bits, root) = (root.orders, root.here());
        let of_store = |order: &Order| bits >> *order as u64 & 1 == 1;
        let orders: Vec<Order> = [Order::Keys, Order::Values].into_iter().filter(of_store).collect();
        let mut secondary = Vec::new();
        for (pool, order) in pools.iter().flat_map(|pool| orders.iter().map(move |order| (pool, *order))) {
            let Ok(of) = pool.stat(&order.object_name(name)) else { continue };
            space.attach_read(&of.id)?;
            secondary.push(Secondary::read(&space, pool, of.id, order)?);
        }
        let (data, freed, name) = (Vec::new(), Vec::new(), name.to_owned());
        Ok(FarStore { space, pool, name, index, root, orders, secondary, data, freed })
    }

    /// Prepares an object of any pool for data, made if missing; returns its ID.
    pub fn data(&mut self, pool: &Pool, name: &str) -> Result<[u8; 16]> {
        if let Ok(of) = pool.stat(name)
            && self.data.iter().any(|data| data.object == of.id)
        {
            return Ok(of.id);
        }
        self.space.add(pool);
        let object = attach(&mut self.space, pool, name)?;
        if self.secondary.iter().all(|index| index.pool != pool.path()) {
            for order in &self.orders {
                let of_order = attach(&mut self.space, pool, &order.object_name(&self.name))?;
                self.secondary.push(Secondary::open(&mut self.space, pool, of_order, *order)?);
            }
        }
        self.data.push(Data { object, pool: pool.path().to_owned() });
        Ok(object)
    }

    pub fn len(&self) -> Result<u64> {
        Ok(self.table()?.0.len)
    }

    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    fn table(&self) -> Result<(At<'_, Index>, &[Slot], Home<'_>)> {
        let home = self.space.home(&self.index)?;
        let index = home.get(self.root)?;
        let slots = match index.follow(index.slots)? {
            Some(first) => first.slice(usize::try_from(index.room)?)?,
            None => &[],
        };
        Ok((index, slots, home))
    }

    #[inline]
    fn find(&self, key: &[u8]) -> Result<(Found, u64)> {
        let (index, slots, home) = self.table()?;
        let hash = table::hash(index.seed, key);
        let is_key = |slot: usize| {
            let record = slots[slot].record;
            Ok(record.key_len == key.len() as u64 && record.texts(home.get(record.at)?)?.0 == key)
        };
        Ok((table::find(hash, slots.len(), |slot| slots[slot].hash, is_key)?, hash))
    }

    /// A key's value in place.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        let (index, slots, home) = self.table()?;
        let hash = table::hash(index.seed, key);
        let mut value = None;
        let is_key = |slot: usize| {
            let record = slots[slot].record;
            if record.key_len != key.len() as u64 {
                return Ok(false);
            }
            let (found, its_value) = record.texts(home.get(record.at)?)?;
            value = (found == key).then_some(its_value);
            Ok(value.is_some())
        };
        table::find(hash, slots.len(), |slot| slots[slot].hash, is_key)?;
        Ok(value)
    }

    /// Keys and values in an order, from the first key, or value, not less than `from`.
    pub fn scan(&self, order: Order, from: &[u8]) -> Result<impl Iterator<Item = Result<(&[u8], &[u8])>>> {
        ensure!(self.orders.contains(&order), "the store has no index of that order");
        let from = match order {
            Order::Keys => (from, &[][..]),
            Order::Values => (&[][..], from),
        };
        let of_order = self.secondary.iter().filter(|index| index.order() == order);
        let scans = of_order.map(|index| index.scan(&self.space, from)).collect::<Result<_>>()?;
        Ok(Merged::new(order, scans))
    }

    /// Copies key and value to the object `data`; returns whether the key is new.
    pub fn insert(&mut self, data: &[u8; 16], key: &[u8], value: &[u8]) -> Result<bool> {
        self.pool_of(data).context("the object is not there for data of the store")?;
        let bytes = self.space.create_parts(data, &[key, value])?;
        let was_there = match self.remove(key) {
            Ok(was_there) => was_there,
            Err(error) => {
                self.space.free(data, bytes)?;
                return Err(error);
            }
        };
        let own = Record { at: bytes, key_len: key.len() as u64, value_len: value.len() as u64 };
        let record = Record::of(&mut self.space, &self.index, data, own)?;
        let (mut found, hash) = self.find(key)?;
        let mut head = *self.table()?.0;
        if found.free.is_none() || !table::has_room(head.used, head.room) {
            self.enlarge()?;
            (found, head) = (self.find(key)?.0, *self.table()?.0);
        }
        let slot = found.free.context("a new table has room")?;
        // This slot alone: a psync would compare the whole table.
        let at = self.space.get_mut(&self.index, head.slots.nth(slot).unwrap_or_default())?;
        head.used = head.used.saturating_add(u64::from(at.hash == EMPTY));
        *at = Slot { hash, record };
        head.len = head.len.saturating_add(1);
        *self.space.get_mut(&self.index, self.root)? = head;
        if !self.secondary.is_empty() {
            let pool = self.pool_of(data).map(Path::to_owned);
            for index in self.secondary.iter().filter(|index| Some(&index.pool) == pool.as_ref()) {
                index.add(&mut self.space, (key, value), (data, own))?;
            }
        }
        Ok(!was_there)
    }

    fn enlarge(&mut self) -> Result<()> {
        let (index, slots, _) = self.table()?;
        let mut head = *index;
        let full: Vec<Slot> = slots.iter().filter(|slot| slot.hash > REMOVED).copied().collect();
        let (former, room) = (head.slots, table::room_for(full.len() as u64));
        head.slots = self.space.create_zeroed(&self.index, usize::try_from(room)?)?;
        let table = self.space.slice_mut::<Slot>(&self.index, head.slots, room as usize)?;
        for slot in &full {
            let free = table::way(slot.hash, table.len()).find(|at| table[*at].hash == EMPTY);
            table[free.context("a new table has room")?] = *slot;
        }
        (head.room, head.used) = (room, full.len() as u64);
        *self.space.get_mut(&self.index, self.root)? = head;
        if former.is_null() { Ok(()) } else { Ok(self.space.free(&self.index, former)?) }
    }

    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let (Found { at: Some(slot), .. }, _) = self.find(key)? else { return Ok(false) };
        let (_, slots, home) = self.table()?;
        let record = slots[slot].record;
        let start = home.get(record.at)?;
        let ((key, value), data, own) = (record.texts(start)?, start.object(), start.here());
        let pool =
            self.pool_of(&data).context("the key's data lies in an object that is not there for data")?;
        let elsewhere = pool != self.pool.path();
        let texts = (key.to_vec(), value.to_vec());
        let of_pool: Vec<usize> =
            (0..self.secondary.len()).filter(|number| self.secondary[*number].pool == pool).collect();
        for number in of_pool {
            self.secondary[number].remove(&mut self.space, (&texts.0, &texts.1))?;
        }
        let mut head = *self.table()?.0;
        *self.space.get_mut(&self.index, head.slots.nth(slot).unwrap_or_default())? =
            Slot { hash: REMOVED, ..NO_SLOT };
        head.len = head.len.saturating_sub(1);
        *self.space.get_mut(&self.index, self.root)? = head;
        // Until the index is durable, it leads there.
        if elsewhere {
            self.freed.push((data, own))
        } else {
            self.space.free(&data, own)?
        }
        Ok(true)
    }

    /// Makes all changes durable: data in other pools first, then the index's pool as one step.
    pub fn psync(&mut self) -> Result<()> {
        let others: Vec<[u8; 16]> = self.elsewhere().collect();
        for object in &others {
            self.space.psync(object)?;
        }
        self.space.psync_all()?;
        if self.freed.is_empty() {
            return Ok(());
        }
        for (object, at) in std::mem::take(&mut self.freed) {
            self.space.free(&object, at)?;
        }
        others.iter().try_for_each(|object| Ok(self.space.psync(object)?))
    }

    fn elsewhere(&self) -> impl Iterator<Item = [u8; 16]> {
        self.data.iter().filter(|data| data.pool != self.pool.path()).map(|data| data.object)
    }

    fn pool_of(&self, object: &[u8; 16]) -> Option<&Path> {
        self.data.iter().find(|data| data.object == *object).map(|data| data.pool.as_path())
    }
}
