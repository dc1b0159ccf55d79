//! Named roots with their types: a page each, with a checksum; slots in the header, and in pages
//! chained to it, list them. All is under the heap's lock.

use super::directory::Directory;
use super::error::{HeapError, Result, damaged};
use super::layout::{INDEX_MAGIC, Kind, LONG_ROOTS, NAME_MAX, PAGE, RootIndex, RootSlot};
use super::root::Root;
use super::root_record::{pages_of, read, write};
use super::state::{Inner, Shared};
use crate::types::MOST;
use indelible_store::format::checksum;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn hash(name: &str) -> u64 {
    checksum(0, &[name.as_bytes()])
}

fn search<'a, R>(
    directory: &Directory<'a>,
    mut look: impl FnMut(u64, &'a [RootSlot]) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let base = std::mem::offset_of!(super::layout::Header, slots) as u64;
    let mut found = look(base, &directory.header.slots)?;
    let mut page = directory.header.roots.load(Relaxed);
    let mut left = directory.pages;
    while page != 0 && found.is_none() {
        let index = index_page(directory, page)?;
        found = look(page * PAGE + 16, &index.slots)?;
        page = index.next.load(Relaxed);
        left -= 1;
        if left == 0 {
            return damaged(0, "the pages of root slots form a ring");
        }
    }
    Ok(found)
}

pub(super) fn slots<'a>(directory: &Directory<'a>) -> Result<Vec<(u64, &'a RootSlot)>> {
    let mut all = Vec::new();
    search(directory, |base, slots| -> Result<Option<()>> {
        all.extend((0_u64..).zip(slots).map(|(index, slot)| (base + index * 16, slot)));
        Ok(None)
    })?;
    Ok(all)
}

fn index_page<'a>(directory: &Directory<'a>, page: u64) -> Result<&'a RootIndex> {
    if page >= directory.pages {
        return damaged(page.saturating_mul(PAGE), "a page of root slots lies beyond the heap");
    }
    let index: &RootIndex = directory.window.at(page * PAGE)?;
    if index.magic.load(Relaxed) != INDEX_MAGIC {
        return damaged(page * PAGE, "here should be a page of root slots");
    }
    Ok(index)
}

fn lookup<'a>(directory: &Directory<'a>, name: &str) -> Result<Option<(u64, &'a RootSlot, Root)>> {
    let wanted = hash(name);
    search(directory, |base, slots| {
        for (index, slot) in (0_u64..).zip(slots) {
            let page = slot.page.load(Relaxed);
            if slot.hash.load(Relaxed) == wanted && page != 0 {
                let root = read(directory.window, page)?;
                if root.name == name {
                    return Ok(Some((base + index * 16, slot, root)));
                }
            }
        }
        Ok(None)
    })
}

pub(super) fn list(shared: &Shared) -> Result<Vec<Root>> {
    let _inner = shared.lock();
    let slots = slots(&Directory::open(&shared.window)?)?;
    let pages = slots.iter().map(|(_, slot)| slot.page.load(Relaxed)).filter(|page| *page != 0);
    let mut all = pages.map(|page| read(&shared.window, page)).collect::<Result<Vec<_>>>()?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

pub(super) fn find(shared: &Shared, name: &str) -> Result<Root> {
    let _inner = shared.lock();
    match lookup(&Directory::open(&shared.window)?, name)? {
        Some((.., root)) => Ok(root),
        None => Err(HeapError::RootMissing { name: name.to_owned() }),
    }
}

pub(super) fn create(shared: &Shared, root: &Root) -> Result<()> {
    check(shared, root)?;
    let mut inner = shared.lock();
    if lookup(&Directory::open(&shared.window)?, &root.name)?.is_some() {
        return Err(HeapError::RootExists { name: root.name.clone() });
    }
    let slot = free_slot(&mut inner, shared)?;
    let page = record(&mut inner, shared, root)?;
    inner.root_made(shared, root.address, page)?;
    let directory = Directory::open(&shared.window)?;
    if let Some((offset, slot)) = slots(&directory)?.into_iter().find(|(offset, _)| *offset == slot) {
        slot.hash.store(hash(&root.name), Relaxed);
        slot.page.store(page, Relaxed);
        shared.window.mark_dirty(offset, size_of::<RootSlot>());
    }
    Ok(())
}

pub(super) fn replace(shared: &Shared, root: &Root) -> Result<()> {
    check(shared, root)?;
    let mut inner = shared.lock();
    let missing = || HeapError::RootMissing { name: root.name.clone() };
    lookup(&Directory::open(&shared.window)?, &root.name)?.ok_or_else(missing)?;
    let page = record(&mut inner, shared, root)?;
    let directory = Directory::open(&shared.window)?;
    let (offset, slot, former) = lookup(&directory, &root.name)?.ok_or_else(missing)?;
    let of_former = slot.page.load(Relaxed);
    if let Err(error) = inner.pages(shared)?.free(of_former, Kind::Meta) {
        inner.pages(shared)?.free(page, Kind::Meta)?;
        return Err(error);
    }
    slot.page.store(page, Relaxed);
    shared.window.mark_dirty(offset, size_of::<RootSlot>());
    inner.root_made(shared, root.address, page)?;
    inner.root_gone(shared, former.address, of_former)
}

fn check(shared: &Shared, root: &Root) -> Result<()> {
    check_texts(root)?;
    let end = root.address.checked_add(root.size as usize);
    let inside = shared.window.offset_of(root.address).is_some()
        && end.is_some_and(|end| end <= shared.window.base() + (shared.window.pages() * PAGE) as usize);
    if inside { Ok(()) } else { Err(HeapError::Foreign { address: root.address }) }
}

fn record(inner: &mut Inner, shared: &Shared, root: &Root) -> Result<u64> {
    let pages = pages_of(root);
    let page = meta_pages(inner, shared, pages)?;
    let directory = Directory::open(&shared.window)?;
    if pages > 1 {
        directory.header.features.fetch_or(LONG_ROOTS, Relaxed);
        shared.window.mark_dirty(0, PAGE as usize);
    }
    write(&shared.window, page, root)?;
    Ok(page)
}

pub(super) fn remove(shared: &Shared, name: &str) -> Result<Root> {
    let mut inner = shared.lock();
    let Some((offset, slot, root)) = lookup(&Directory::open(&shared.window)?, name)? else {
        return Err(HeapError::RootMissing { name: name.to_owned() });
    };
    let page = slot.page.load(Relaxed);
    inner.pages(shared)?.free(page, Kind::Meta)?;
    slot.page.store(0, Relaxed);
    slot.hash.store(0, Relaxed);
    shared.window.mark_dirty(offset, size_of::<RootSlot>());
    inner.root_gone(shared, root.address, page)?;
    Ok(root)
}

fn free_slot(inner: &mut Inner, shared: &Shared) -> Result<u64> {
    let directory = Directory::open(&shared.window)?;
    let free = slots(&directory)?.into_iter().find(|(_, slot)| slot.page.load(Relaxed) == 0);
    if let Some((offset, _)) = free {
        return Ok(offset);
    }
    let page = meta_pages(inner, shared, 1)?;
    shared.window.fill(page * PAGE, PAGE as usize, 0)?;
    let index: &RootIndex = shared.window.at(page * PAGE)?;
    index.magic.store(INDEX_MAGIC, Relaxed);
    index.next.store(directory.header.roots.load(Relaxed), Relaxed);
    directory.header.roots.store(page, Relaxed);
    shared.window.mark_dirty(0, PAGE as usize);
    Ok(page * PAGE + 16)
}

pub(super) fn meta_pages(inner: &mut Inner, shared: &Shared, count: u64) -> Result<u64> {
    if let Some(run) = inner.pages(shared)?.allocate(count, 1, Kind::Meta, 0)? {
        return Ok(run.page);
    }
    inner.reclaim(shared)?;
    let mut pages = inner.pages(shared)?;
    match pages.allocate(count, 1, Kind::Meta, 0)? {
        Some(run) => Ok(run.page),
        None => Err(super::pages::full(&pages, (count * PAGE) as usize)),
    }
}

fn check_texts(root: &Root) -> Result<()> {
    let limits = [
        ("a root's name", root.name.len(), 1, NAME_MAX),
        ("the name of a root's type", root.type_name.len(), 1, NAME_MAX),
        ("the description of a layout", root.layout.len(), 0, MOST),
    ];
    for (what, len, least, most) in limits {
        if len < least || len > most {
            return Err(HeapError::RootText { what, len, least, most });
        }
    }
    Ok(())
}
