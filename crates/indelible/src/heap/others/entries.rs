use super::super::directory::Directory;
use super::super::error::{HeapError, Result};
use super::super::layout::{FAR_ENTRIES, FAR_NAME_MAX, PAGE};
use super::super::state::Shared;
use super::table::{Table, Use, check, entry_by_id, is_common, put};
use crate::far::FarEntry;
use crate::types::far::MOST_INDEX;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(in super::super) struct OtherObjects {
    known: Mutex<Option<Entries>>,
    leaf: AtomicU64,
}

const PAGE_BITS: u32 = 40;

#[derive(Debug, Default)]
struct Entries {
    numbers: HashMap<FarEntry, u32>,
    free: Vec<u32>,
}

fn with_table<R>(shared: &Shared, f: impl FnOnce(Option<Table<'_>>) -> Result<R>) -> Result<R> {
    let _inner = shared.lock();
    f(Table::open(Directory::open(&shared.window)?)?)
}

fn expect_writable(shared: &Shared) -> Result<()> {
    if shared.window.writable { Ok(()) } else { Err(HeapError::ReadOnly) }
}

impl OtherObjects {
    fn known(&self) -> MutexGuard<'_, Option<Entries>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without a lock: no thread changes the table meanwhile.
    #[inline]
    pub(in super::super) fn entry_near(&self, shared: &Shared, index: u32) -> Option<FarEntry> {
        let number = u64::from(index) / FAR_ENTRIES as u64 + 1;
        let leaf = self.leaf.load(Relaxed);
        let page = leaf & ((1 << PAGE_BITS) - 1);
        match leaf >> PAGE_BITS == number {
            true => entry_by_id(shared.window.at(page * PAGE).ok()?, index),
            false => None,
        }
    }

    pub(in super::super) fn entry(&self, shared: &Shared, index: u32) -> Result<FarEntry> {
        let _inner = shared.lock();
        if let Some(entry) = self.entry_near(shared, index) {
            return Ok(entry);
        }
        let number = u64::from(index) / FAR_ENTRIES as u64 + 1;
        let missing = || HeapError::FarMissing { index };
        let table = Table::open(Directory::open(&shared.window)?)?.ok_or_else(missing)?;
        let slot = table.slot(index)?.ok_or_else(missing)?;
        let page = slot.1 / PAGE;
        if page >> PAGE_BITS == 0 {
            self.leaf.store((number << PAGE_BITS) | page, Relaxed);
        }
        table.entry_at(slot)?.ok_or_else(missing)
    }

    pub(in super::super) fn all(shared: &Shared) -> Result<Vec<(u32, FarEntry)>> {
        with_table(shared, |table| {
            let Some(table) = table else { return Ok(Vec::new()) };
            let entries = (1..=table.count()).map(|index| Ok((index, table.entry(index)?)));
            entries
                .filter_map(|entry| entry.map(|(index, entry)| Some((index, entry?))).transpose())
                .collect()
        })
    }

    pub(in super::super) fn index(&self, shared: &Shared, entry: &FarEntry) -> Result<u32> {
        expect_names(entry)?;
        expect_writable(shared)?;
        let mut known = self.known();
        let entries = entries(&mut known, shared)?;
        if let Some(index) = entries.numbers.get(entry) {
            return Ok(*index);
        }
        let index = add(shared, entries.free.last().copied(), entry, Use::Common)?;
        entries.free.pop_if(|free| *free == index);
        entries.numbers.insert(entry.clone(), index);
        Ok(index)
    }

    pub(in super::super) fn private_index(&self, shared: &Shared, entry: &FarEntry) -> Result<u32> {
        expect_names(entry)?;
        expect_writable(shared)?;
        let mut known = self.known();
        let entries = entries(&mut known, shared)?;
        let index = add(shared, entries.free.last().copied(), entry, Use::Private)?;
        entries.free.pop_if(|free| *free == index);
        Ok(index)
    }

    pub(in super::super) fn retarget(&self, shared: &Shared, index: u32, entry: &FarEntry) -> Result<()> {
        expect_names(entry)?;
        expect_writable(shared)?;
        let mut known = self.known();
        entries(&mut known, shared)?;
        *known = None;
        let mut inner = shared.lock();
        let table = Table::open_or_make(&mut inner, shared)?;
        let missing = HeapError::FarMissing { index };
        if table.entry(index)?.is_none() {
            return Err(missing);
        }
        let name = match names(entry) {
            Some(names) => table.put_names(&mut inner, shared, names.as_bytes())?,
            None => 0,
        };
        let before = table.names_page(index)?.into_iter().collect();
        table.expect_private(shared);
        put(shared, table.slot(index)?.ok_or(missing)?, Some(entry), name, Use::Private);
        table.free_names(&mut inner, shared, &before)
    }

    pub(in super::super) fn remove(&self, shared: &Shared, needed: &dyn Fn(u32) -> bool) -> Result<u32> {
        let mut known = self.known();
        entries(&mut known, shared)?;
        *known = None;
        let mut inner = shared.lock();
        let Some(table) = Table::open(Directory::open(&shared.window)?)? else {
            return Ok(0);
        };
        let (mut removed, mut left) = (0, BTreeSet::new());
        for index in (1..=table.count()).filter(|index| !needed(*index)) {
            if table.entry(index)?.is_none() {
                continue;
            }
            left.extend(table.names_page(index)?);
            if let Some(slot) = table.slot(index)? {
                put(shared, slot, None, 0, Use::Common);
                removed += 1;
            }
        }
        table.free_names(&mut inner, shared, &left)?;
        Ok(removed)
    }
}

fn entries<'k>(known: &'k mut Option<Entries>, shared: &Shared) -> Result<&'k mut Entries> {
    match known {
        Some(entries) => Ok(entries),
        none => Ok(none.insert(read_entries(shared)?)),
    }
}

/// Reads all entries. An incomplete table is not stored to: its pages might be something else's.
fn read_entries(shared: &Shared) -> Result<Entries> {
    with_table(shared, |table| {
        let mut known = Entries::default();
        let Some(table) = table else { return Ok(known) };
        if let [(offset, what), others @ ..] = &check(&table.directory).1[..] {
            let (offset, what, more) = (*offset, what.clone(), others.len());
            return Err(HeapError::Findings { offset, what, more });
        }
        let mut read = Ok(());
        table.each(|index, slot| {
            let entry = |slot: (&_, u64)| Ok(table.entry_at(slot)?.map(|entry| (entry, is_common(slot.0))));
            match slot.and_then(|slot| slot.map_or(Ok(None), entry)) {
                Ok(Some((entry, true))) => drop(known.numbers.entry(entry).or_insert(index)),
                Ok(Some((_, false))) => {}
                Ok(None) => known.free.push(index),
                Err(error) if read.is_ok() => read = Err(error),
                Err(_) => {}
            }
        });
        known.free.reverse();
        read.map(|()| known)
    })
}

pub(super) fn add(shared: &Shared, free: Option<u32>, entry: &FarEntry, of: Use) -> Result<u32> {
    let mut inner = shared.lock();
    let table = Table::open_or_make(&mut inner, shared)?;
    let index = free.unwrap_or(table.count() + 1);
    if index > MOST_INDEX {
        return Err(HeapError::FarFull);
    }
    let name = match names(entry) {
        Some(names) => table.put_names(&mut inner, shared, names.as_bytes())?,
        None => 0,
    };
    let slot = table.make_slot(&mut inner, shared, index)?;
    if of == Use::Private {
        table.expect_private(shared);
    }
    put(shared, slot, Some(entry), name, of);
    Ok(index)
}

fn names(entry: &FarEntry) -> Option<String> {
    entry.target.id().err().map(|(resolver, name)| format!("{resolver}{name}"))
}

fn expect_names(entry: &FarEntry) -> Result<()> {
    let Err((resolver, name)) = entry.target.id() else { return Ok(()) };
    let limits = [
        ("the name of a resolver", resolver.len(), 255),
        ("the name of another object", name.len(), FAR_NAME_MAX - resolver.len().min(255)),
    ];
    match limits.into_iter().find(|(_, len, most)| !(1..=*most).contains(len)) {
        Some((what, len, most)) => Err(HeapError::RootText { what, len, least: 1, most }),
        None => Ok(()),
    }
}
