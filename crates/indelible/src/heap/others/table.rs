use super::super::directory::Directory;
use super::super::error::{HeapError, Result, damaged};
use super::super::layout::{
    FAR, FAR_ENTRIES, FAR_LEAVES, FAR_MAGIC, FAR_NAME_MAX, FAR_PRIVATE, FarLeaf, FarMiddle, FarSlot,
    FarTable, Kind, PAGE, Shared as InPlace,
};
use super::super::pages::find;
use super::super::roots::meta_pages;
use super::super::state::{Inner, Shared};
use crate::far::{FarEntry, FarTarget, Rights};
use crate::types::far::MOST_INDEX;
use indelible_store::Mutant;
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const BY_ID: u8 = 1;
const BY_NAME: u8 = 2;

#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) directory: Directory<'a>,
    page: u64,
    head: &'a FarTable,
}

fn own_page<'a, T: InPlace>(directory: &Directory<'a>, page: u64) -> Result<&'a T> {
    let offset = page.saturating_mul(PAGE);
    let is_own = page < directory.pages
        && matches!(find(directory, page)?, Some(found) if found.page == page && found.entry.kind == Kind::Meta);
    match is_own {
        true => directory.window.at(offset),
        false => damaged(offset, "the table of other objects has a page that is not the heap's own"),
    }
}

fn slot_of((leaf, at): (&FarLeaf, u64), index: u32) -> (&FarSlot, u64) {
    let (_, _, entry) = place(index);
    (&leaf.entries[entry], at + (entry * size_of::<FarSlot>()) as u64)
}

fn place(index: u32) -> (usize, usize, usize) {
    let index = index as usize;
    (index / (FAR_LEAVES * FAR_ENTRIES), index / FAR_ENTRIES % FAR_LEAVES, index % FAR_ENTRIES)
}

fn id(slot: &FarSlot) -> [u8; 16] {
    let [low, high] = [&slot.id[0], &slot.id[1]].map(|word| word.load(Relaxed));
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}

pub(super) fn entry_by_id(leaf: &FarLeaf, index: u32) -> Option<FarEntry> {
    let slot = &leaf.entries[index as usize % FAR_ENTRIES];
    let rights = Rights::from_bits(slot.rights.load(Relaxed))?;
    let target = FarTarget::Object(id(slot));
    (slot.kind.load(Relaxed) == BY_ID).then_some(FarEntry { target, rights })
}

impl<'a> Table<'a> {
    pub(super) fn open(directory: Directory<'a>) -> Result<Option<Table<'a>>> {
        let page = directory.header.far.load(Relaxed);
        if page == 0 {
            return Ok(None);
        }
        let head: &FarTable = own_page(&directory, page)?;
        if head.magic.load(Relaxed) != FAR_MAGIC {
            return damaged(page * PAGE, "here should be the table of other objects");
        }
        if head.count.load(Relaxed) > u64::from(MOST_INDEX) {
            return damaged(page * PAGE + 8, "the table of other objects has more entries than can be");
        }
        Ok(Some(Table { directory, page, head }))
    }

    pub(super) fn open_or_make(inner: &mut Inner, shared: &'a Shared) -> Result<Table<'a>> {
        let directory = Directory::open(&shared.window)?;
        if let Some(table) = Table::open(directory)? {
            return Ok(table);
        }
        let page = blank_page(inner, shared)?;
        let head: &FarTable = shared.window.at(page * PAGE)?;
        head.magic.store(FAR_MAGIC, Relaxed);
        shared.window.mark_dirty(page * PAGE, PAGE as usize);
        let directory = Directory::open(&shared.window)?;
        directory.header.features.fetch_or(FAR, Relaxed);
        directory.header.far.store(page, Relaxed);
        shared.window.mark_dirty(0, PAGE as usize);
        Ok(Table { directory, page, head })
    }

    pub(super) fn expect_private(&self, shared: &Shared) {
        self.directory.header.features.fetch_or(FAR_PRIVATE, Relaxed);
        shared.window.mark_dirty(0, PAGE as usize);
    }

    pub(super) fn count(&self) -> u32 {
        self.head.count.load(Relaxed) as u32
    }

    pub(super) fn slot(&self, index: u32) -> Result<Option<(&'a FarSlot, u64)>> {
        if index == 0 || index > self.count() {
            return Ok(None);
        }
        Ok(self.leaf(index)?.map(|leaf| slot_of(leaf, index)))
    }

    fn leaf(&self, index: u32) -> Result<Option<(&'a FarLeaf, u64)>> {
        let (middle, leaf, _) = place(index);
        let page = self.head.middles[middle].load(Relaxed);
        if page == 0 {
            return Ok(None);
        }
        let page = own_page::<FarMiddle>(&self.directory, page)?.leaves[leaf].load(Relaxed);
        if page == 0 {
            return Ok(None);
        }
        Ok(Some((own_page(&self.directory, page)?, page * PAGE)))
    }

    pub(super) fn each(&self, mut see: impl FnMut(u32, Result<Option<(&'a FarSlot, u64)>>)) {
        let (count, entries) = (self.count(), FAR_ENTRIES as u32);
        for first in (0..=count).step_by(FAR_ENTRIES) {
            let numbers = first.max(1)..=count.min(first + entries - 1);
            match self.leaf(first) {
                Ok(Some(leaf)) => numbers.for_each(|index| see(index, Ok(Some(slot_of(leaf, index))))),
                Ok(None) => numbers.for_each(|index| see(index, Ok(None))),
                Err(error) => see(first.max(1), Err(error)),
            }
        }
    }

    pub(super) fn entry(&self, index: u32) -> Result<Option<FarEntry>> {
        self.slot(index)?.map_or(Ok(None), |slot| self.entry_at(slot))
    }

    pub(super) fn entry_at(&self, (slot, at): (&FarSlot, u64)) -> Result<Option<FarEntry>> {
        let target = match slot.kind.load(Relaxed) {
            0 => return Ok(None),
            BY_ID => FarTarget::Object(id(slot)),
            BY_NAME => self.names(slot, at)?,
            _ => return damaged(at, "an entry for another object of no known kind"),
        };
        match Rights::from_bits(slot.rights.load(Relaxed)) {
            Some(rights) => Ok(Some(FarEntry { target, rights })),
            None => damaged(at, "an entry for another object asks for no rights, or for unknown ones"),
        }
    }

    fn names(&self, slot: &FarSlot, at: u64) -> Result<FarTarget> {
        let (offset, len) = (slot.name.load(Relaxed), slot.name_len.load(Relaxed) as usize);
        let resolver = usize::from(slot.resolver_len.load(Relaxed));
        if len > FAR_NAME_MAX || resolver == 0 || resolver >= len {
            return damaged(at, "an entry for another object has no name that could be");
        }
        let page = offset / PAGE;
        if offset % PAGE + len as u64 > PAGE {
            return damaged(at, "the name of another object ends beyond its page");
        }
        let _: &FarMiddle = own_page(&self.directory, page)?;
        let mut bytes = vec![0; len];
        self.directory.window.read(offset, &mut bytes)?;
        match String::from_utf8(bytes) {
            Ok(text) if text.is_char_boundary(resolver) => {
                let (resolver, name) = text.split_at(resolver);
                Ok(FarTarget::Name { resolver: resolver.to_owned(), name: name.to_owned() })
            }
            _ => damaged(at, "the name of another object is no text"),
        }
    }

    pub(super) fn make_slot(
        &self,
        inner: &mut Inner,
        shared: &'a Shared,
        index: u32,
    ) -> Result<(&'a FarSlot, u64)> {
        let (middle, leaf, entry) = place(index);
        let at = self.page * PAGE + offset_of!(FarTable, middles) as u64 + 8 * middle as u64;
        let page = linked(inner, shared, &self.head.middles[middle], at)?;
        let leaves: &FarMiddle = own_page(&self.directory, page)?;
        let page = linked(inner, shared, &leaves.leaves[leaf], page * PAGE + 8 * leaf as u64)?;
        let slots: &FarLeaf = own_page(&self.directory, page)?;
        if index > self.count() {
            self.head.count.store(u64::from(index), Relaxed);
            shared.window.mark_dirty(self.page * PAGE, size_of::<u64>() * 4);
        }
        Ok((&slots.entries[entry], page * PAGE + (entry * size_of::<FarSlot>()) as u64))
    }

    pub(super) fn put_names(&self, inner: &mut Inner, shared: &'a Shared, bytes: &[u8]) -> Result<u64> {
        let before = self.head.names.load(Relaxed);
        let (mut page, mut taken) = (before, self.head.taken.load(Relaxed));
        if page == 0 || taken.saturating_add(bytes.len() as u64) > PAGE {
            (page, taken) = (blank_page(inner, shared)?, 0);
        }
        let _: &FarMiddle = own_page(&self.directory, page)?;
        shared.window.write(page * PAGE + taken, bytes)?;
        self.head.names.store(page, Relaxed);
        self.head.taken.store(taken + bytes.len() as u64, Relaxed);
        shared.window.mark_dirty(self.page * PAGE, size_of::<u64>() * 4);
        self.free_names(inner, shared, &BTreeSet::from([before]))?;
        Ok(page * PAGE + taken)
    }

    pub(super) fn free_names(
        &self,
        inner: &mut Inner,
        shared: &'a Shared,
        pages: &BTreeSet<u64>,
    ) -> Result<()> {
        let mut unused = pages.clone();
        [0, self.head.names.load(Relaxed)].iter().for_each(|page| _ = unused.remove(page));
        for index in 1..=self.count() {
            if unused.is_empty() {
                break;
            }
            self.names_page(index)?.iter().for_each(|page| _ = unused.remove(page));
        }
        for page in unused {
            let _: &FarMiddle = own_page(&self.directory, page)?;
            inner.pages(shared)?.free(page, Kind::Meta)?;
        }
        Ok(())
    }

    pub(super) fn names_page(&self, index: u32) -> Result<Option<u64>> {
        Ok(self.slot(index)?.and_then(|(slot, _)| names_page_of(slot)))
    }
}

fn names_page_of(slot: &FarSlot) -> Option<u64> {
    (slot.kind.load(Relaxed) == BY_NAME).then(|| slot.name.load(Relaxed) / PAGE)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Common,
    Private,
}

pub(super) fn is_common(slot: &FarSlot) -> bool {
    slot.private.load(Relaxed) == 0 || Mutant::FarEntryShared.is_on()
}

pub(super) fn put(
    shared: &Shared,
    (slot, at): (&FarSlot, u64),
    entry: Option<&FarEntry>,
    name: u64,
    of: Use,
) {
    let (mut id, mut lens, mut kind) = ([0; 16], (0, 0), 0);
    match entry.map(|entry| entry.target.id()) {
        Some(Ok(of)) => (id, kind) = (of, BY_ID),
        Some(Err((resolver, name))) => {
            (lens, kind) = ((resolver.len() as u8, (resolver.len() + name.len()) as u32), BY_NAME);
        }
        None => {}
    }
    let id = u128::from_le_bytes(id);
    slot.id[0].store(id as u64, Relaxed);
    slot.id[1].store((id >> 64) as u64, Relaxed);
    slot.name.store(name, Relaxed);
    slot.name_len.store(lens.1, Relaxed);
    slot.resolver_len.store(lens.0, Relaxed);
    slot.rights.store(entry.map_or(0, |entry| entry.rights.bits()), Relaxed);
    slot.private.store(u8::from(of == Use::Private), Relaxed);
    slot.kind.store(kind, Relaxed);
    if !Mutant::FarEntryUnmarked.is_on() {
        shared.window.mark_dirty(at, size_of::<FarSlot>());
    }
}

fn linked(inner: &mut Inner, shared: &Shared, word: &AtomicU64, at: u64) -> Result<u64> {
    match word.load(Relaxed) {
        0 => {
            let page = blank_page(inner, shared)?;
            word.store(page, Relaxed);
            shared.window.mark_dirty(at, size_of::<u64>());
            Ok(page)
        }
        page => Ok(page),
    }
}

fn blank_page(inner: &mut Inner, shared: &Shared) -> Result<u64> {
    let page = meta_pages(inner, shared, 1)?;
    shared.window.fill(page * PAGE, PAGE as usize, 0)?;
    Ok(page)
}

pub(in super::super) fn check(directory: &Directory<'_>) -> (BTreeSet<u64>, Vec<(u64, String)>) {
    let (mut pages, mut findings) = (BTreeSet::new(), Vec::new());
    let mut say = |error: HeapError| match error {
        HeapError::Damaged { offset, what } => findings.push((offset, what.to_owned())),
        other => findings.push((0, other.to_string())),
    };
    let table = match Table::open(*directory) {
        Ok(None) => return (pages, findings),
        Ok(Some(table)) => table,
        Err(error) => {
            say(error);
            return (pages, findings);
        }
    };
    pages.insert(table.page);
    let mut add = |page: u64| match page {
        0 => false,
        page => {
            if !pages.insert(page) {
                say(HeapError::Damaged {
                    offset: page.saturating_mul(PAGE),
                    what: "the table of other objects has a page twice",
                });
            }
            if let Err(error) = own_page::<FarMiddle>(directory, page) {
                say(error);
            }
            true
        }
    };
    add(table.head.names.load(Relaxed));
    let mut names = BTreeSet::new();
    for middle in table.head.middles.iter().map(|word| word.load(Relaxed)).filter(|page| *page != 0) {
        add(middle);
        let Ok(leaves) = own_page::<FarMiddle>(directory, middle) else { continue };
        leaves.leaves.iter().map(|word| word.load(Relaxed)).filter(|page| *page != 0).for_each(|leaf| {
            add(leaf);
        });
    }
    table.each(|_, slot| {
        match slot.and_then(|slot| slot.map(|slot| table.entry_at(slot)).transpose().map(|_| slot)) {
            Ok(slot) => names.extend(slot.and_then(|(slot, _)| names_page_of(slot))),
            Err(error) => say(error),
        }
    });
    pages.extend(names);
    (pages, findings)
}
