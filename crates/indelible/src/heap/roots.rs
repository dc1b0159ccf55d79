//! Named roots: where a program finds its data again, and of which type they are.
//!
//! A root has a page of its own, which a checksum covers; slots in the header, and in pages chained to
//! it, say where they are. All of it is under the heap's lock.

use super::directory::Directory;
use super::error::{HeapError, Result, damaged};
use super::layout::{
    INDEX_MAGIC, Kind, LAYOUT_MAX, NAME_MAX, PAGE, ROOT_MAGIC, ROOT_TEXT, RootIndex, RootRecord, RootSlot,
};
use super::state::{Inner, Shared};
use super::window::Window;
use indelible_store::format::checksum;
use std::sync::atomic::Ordering::Relaxed;

/// A type as roots know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeInfo<'a> {
    /// Its name, up to 255 bytes.
    pub name: &'a str,
    /// 128 bits that differ if names, types, offsets or sizes of its fields do.
    pub fingerprint: u128,
    /// The layout for people, up to 3,522 bytes: what an error shows.
    pub layout: &'a str,
}

/// A root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// Address of the data.
    pub address: usize,
    /// Bytes they have.
    pub size: u64,
    /// Name of their type.
    pub type_name: String,
    /// The type's fingerprint.
    pub fingerprint: u128,
    /// The type's layout, as whoever made the root described it.
    pub layout: String,
}

impl Root {
    /// Fails if the root is of another type.
    pub(super) fn expect(self, wanted: &TypeInfo<'_>) -> Result<Root> {
        if self.fingerprint == wanted.fingerprint && self.type_name == wanted.name {
            return Ok(self);
        }
        let what = if self.type_name == wanted.name { "another layout" } else { "another type" };
        let difference = format!(
            "{what}: in the heap is\n{} (fingerprint {:032x})\n{}\nand the program has\n{} (fingerprint {:032x})\n{}\n",
            self.type_name, self.fingerprint, self.layout, wanted.name, wanted.fingerprint, wanted.layout,
        );
        Err(HeapError::RootType { name: self.name, difference })
    }
}

pub(super) fn hash(name: &str) -> u64 {
    checksum(0, &[name.as_bytes()])
}

const RECORD: usize = size_of::<RootRecord>();

/// Offsets of the fields of a record.
mod at {
    use super::RootRecord;
    use std::mem::offset_of;
    pub(super) const NAME_LEN: usize = offset_of!(RootRecord, name_len);
    pub(super) const TYPE_LEN: usize = offset_of!(RootRecord, type_len);
    pub(super) const LAYOUT_LEN: usize = offset_of!(RootRecord, layout_len);
    pub(super) const CHECKSUM: usize = offset_of!(RootRecord, checksum);
    pub(super) const OFFSET: usize = offset_of!(RootRecord, offset);
    pub(super) const SIZE: usize = offset_of!(RootRecord, size);
    pub(super) const FINGERPRINT: usize = offset_of!(RootRecord, fingerprint);
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

fn sum(bytes: &mut [u8], page: u64) -> u64 {
    bytes[at::CHECKSUM..at::CHECKSUM + 8].fill(0);
    checksum(page, &[bytes])
}

/// Reads the root at `page`.
pub(super) fn read(window: &Window, page: u64) -> Result<Root> {
    let mut bytes = vec![0; PAGE as usize];
    let offset = page.saturating_mul(PAGE);
    window.read(offset, &mut bytes)?;
    let wrong = || damaged(offset, "the page of a root does not verify");
    let stored = u64::from_le_bytes(field(&bytes, at::CHECKSUM));
    if sum(&mut bytes, page) != stored || u32::from_le_bytes(field(&bytes, 0)) != ROOT_MAGIC {
        return wrong();
    }
    let len = |at| usize::from(u16::from_le_bytes(field(&bytes, at)));
    let (name, kind) = (len(at::NAME_LEN), len(at::TYPE_LEN));
    let layout = u32::from_le_bytes(field(&bytes, at::LAYOUT_LEN)) as usize;
    if name + kind + layout > ROOT_TEXT {
        return wrong();
    }
    let text = |from: usize, len: usize| {
        let text = bytes.get(RECORD + from..RECORD + from + len);
        text.and_then(|text| std::str::from_utf8(text).ok()).map(str::to_owned)
    };
    let texts = (text(0, name), text(name, kind), text(name + kind, layout));
    let (Some(name), Some(type_name), Some(layout)) = texts else { return wrong() };
    let start = u64::from_le_bytes(field(&bytes, at::OFFSET));
    let size = u64::from_le_bytes(field(&bytes, at::SIZE));
    if start.checked_add(size).is_none_or(|end| end > window.pages() * PAGE) {
        return damaged(offset, "a root lies beyond the heap");
    }
    Ok(Root {
        name,
        address: window.base().wrapping_add(start as usize),
        size,
        type_name,
        fingerprint: u128::from_le_bytes(field(&bytes, at::FINGERPRINT)),
        layout,
    })
}

fn write(window: &Window, page: u64, root: &Root) -> Result<()> {
    let mut bytes = vec![0; PAGE as usize];
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(0, &ROOT_MAGIC.to_le_bytes());
    put(at::NAME_LEN, &(root.name.len() as u16).to_le_bytes());
    put(at::TYPE_LEN, &(root.type_name.len() as u16).to_le_bytes());
    put(at::LAYOUT_LEN, &(root.layout.len() as u32).to_le_bytes());
    put(at::OFFSET, &((root.address - window.base()) as u64).to_le_bytes());
    put(at::SIZE, &root.size.to_le_bytes());
    put(at::FINGERPRINT, &root.fingerprint.to_le_bytes());
    let mut text = RECORD;
    for part in [&root.name, &root.type_name, &root.layout] {
        put(text, part.as_bytes());
        text += part.len();
    }
    let sum = sum(&mut bytes, page);
    bytes[at::CHECKSUM..at::CHECKSUM + 8].copy_from_slice(&sum.to_le_bytes());
    window.write(page * PAGE, &bytes)
}

/// The slots in the header and in the pages behind it: each with its offset.
pub(super) fn slots<'a>(directory: &Directory<'a>) -> Result<Vec<(u64, &'a RootSlot)>> {
    let base = std::mem::offset_of!(super::layout::Header, slots) as u64;
    let with = |base: u64| move |(index, slot): (usize, &'a RootSlot)| (base + index as u64 * 16, slot);
    let mut all: Vec<_> = directory.header.slots.iter().enumerate().map(with(base)).collect();
    let mut page = directory.header.roots.load(Relaxed);
    let mut left = directory.pages;
    while page != 0 {
        let index = index_page(directory, page)?;
        all.extend(index.slots.iter().enumerate().map(with(page * PAGE + 16)));
        page = index.next.load(Relaxed);
        left -= 1;
        if left == 0 {
            return damaged(0, "the pages of root slots form a ring");
        }
    }
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

/// The root `name` and its slot.
fn lookup<'a>(directory: &Directory<'a>, name: &str) -> Result<Option<(u64, &'a RootSlot, Root)>> {
    let wanted = hash(name);
    for (offset, slot) in slots(directory)? {
        let page = slot.page.load(Relaxed);
        if page != 0 && slot.hash.load(Relaxed) == wanted {
            let root = read(directory.window, page)?;
            if root.name == name {
                return Ok(Some((offset, slot, root)));
            }
        }
    }
    Ok(None)
}

/// All roots, sorted by name.
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
    check_texts(root)?;
    let end = root.address.checked_add(root.size as usize);
    let inside = shared.window.offset_of(root.address).is_some()
        && end.is_some_and(|end| end <= shared.window.base() + (shared.window.pages() * PAGE) as usize);
    if !inside {
        return Err(HeapError::Foreign { address: root.address });
    }
    let mut inner = shared.lock();
    if lookup(&Directory::open(&shared.window)?, &root.name)?.is_some() {
        return Err(HeapError::RootExists { name: root.name.clone() });
    }
    let slot = free_slot(&mut inner, shared)?;
    let page = meta_page(&mut inner, shared)?;
    write(&shared.window, page, root)?;
    let directory = Directory::open(&shared.window)?;
    if let Some((offset, slot)) = slots(&directory)?.into_iter().find(|(offset, _)| *offset == slot) {
        slot.hash.store(hash(&root.name), Relaxed);
        slot.page.store(page, Relaxed);
        shared.window.mark_dirty(offset, size_of::<RootSlot>());
    }
    Ok(())
}

pub(super) fn remove(shared: &Shared, name: &str) -> Result<Root> {
    let mut inner = shared.lock();
    let Some((offset, slot, root)) = lookup(&Directory::open(&shared.window)?, name)? else {
        return Err(HeapError::RootMissing { name: name.to_owned() });
    };
    inner.pages(shared)?.free(slot.page.load(Relaxed), Kind::Meta)?;
    slot.page.store(0, Relaxed);
    slot.hash.store(0, Relaxed);
    shared.window.mark_dirty(offset, size_of::<RootSlot>());
    Ok(root)
}

/// Offset of a free slot; makes one if need be.
fn free_slot(inner: &mut Inner, shared: &Shared) -> Result<u64> {
    let directory = Directory::open(&shared.window)?;
    let free = slots(&directory)?.into_iter().find(|(_, slot)| slot.page.load(Relaxed) == 0);
    if let Some((offset, _)) = free {
        return Ok(offset);
    }
    let page = meta_page(inner, shared)?;
    shared.window.fill(page * PAGE, PAGE as usize, 0)?;
    let index: &RootIndex = shared.window.at(page * PAGE)?;
    index.magic.store(INDEX_MAGIC, Relaxed);
    index.next.store(directory.header.roots.load(Relaxed), Relaxed);
    directory.header.roots.store(page, Relaxed);
    shared.window.mark_dirty(0, PAGE as usize);
    Ok(page * PAGE + 16)
}

fn meta_page(inner: &mut Inner, shared: &Shared) -> Result<u64> {
    if let Some(run) = inner.pages(shared)?.allocate(1, 1, Kind::Meta, 0)? {
        return Ok(run.page);
    }
    inner.reclaim(shared)?;
    let mut pages = inner.pages(shared)?;
    match pages.allocate(1, 1, Kind::Meta, 0)? {
        Some(run) => Ok(run.page),
        None => Err(super::pages::full(&pages, PAGE as usize)),
    }
}

fn check_texts(root: &Root) -> Result<()> {
    let limits = [
        ("a root's name", root.name.len(), 1, NAME_MAX),
        ("the name of a root's type", root.type_name.len(), 1, NAME_MAX),
        ("the description of a layout", root.layout.len(), 0, LAYOUT_MAX),
    ];
    for (what, len, least, most) in limits {
        if len < least || len > most {
            return Err(HeapError::RootText { what, len, least, most });
        }
    }
    Ok(())
}
