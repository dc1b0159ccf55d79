//! The blocks of roots, which are neither freed nor resized while a root leads to them. Read at the
//! first free of a block, then kept up to date.

use super::allocator::Allocator;
use super::directory::Directory;
use super::error::{HeapError, Result};
use super::layout::{PAGE, RootRecord};
use super::root_record::read;
use super::roots::slots;
use super::span::Span;
use super::state::{Inner, Shared};
use indelible_store::Mutant;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

type Places = BTreeSet<(u64, u64)>;

fn places(shared: &Shared) -> Result<Places> {
    let slots = slots(&Directory::open(&shared.window)?)?;
    let pages = slots.iter().map(|(_, slot)| slot.page.load(Relaxed)).filter(|page| *page != 0);
    let place = |page: u64| Some((offset_in(shared, page).ok()?, page));
    Ok(pages.filter_map(place).collect())
}

fn within(places: &Places, bytes: Range<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
    places.range((bytes.start, 0)..(bytes.end, 0)).copied()
}

fn offset_in(shared: &Shared, page: u64) -> Result<u64> {
    let at = page.saturating_mul(PAGE).saturating_add(std::mem::offset_of!(RootRecord, offset) as u64);
    Ok(shared.window.at::<AtomicU64>(at)?.load(Relaxed))
}

impl Inner {
    fn root_places(&mut self, shared: &Shared) -> Result<&mut Places> {
        if self.roots.is_none() {
            self.roots = Some(places(shared)?);
        }
        self.roots.as_mut().ok_or(HeapError::NotAHeap)
    }

    pub(super) fn root_made(&mut self, shared: &Shared, address: usize, page: u64) -> Result<()> {
        self.root_changed(shared, address, |places, offset| places.insert((offset, page)))
    }

    pub(super) fn root_gone(&mut self, shared: &Shared, address: usize, page: u64) -> Result<()> {
        self.root_changed(shared, address, |places, offset| places.remove(&(offset, page)))
    }

    fn root_changed(
        &mut self,
        shared: &Shared,
        address: usize,
        change: impl FnOnce(&mut Places, u64) -> bool,
    ) -> Result<()> {
        let Some(offset) = shared.window.offset_of(address) else { return Ok(()) };
        change(self.root_places(shared)?, offset);
        match shared.table.get((offset / PAGE) as usize).and_then(|slot| slot.get()) {
            Some(span) => self.mark_roots(shared, span),
            None => Ok(()),
        }
    }

    fn mark_roots(&mut self, shared: &Shared, span: &Span) -> Result<()> {
        let bytes = span.page() * PAGE..(span.page() + span.pages()) * PAGE;
        let base = shared.window.base();
        let roots = within(self.root_places(shared)?, bytes);
        span.mark_roots(roots.filter_map(|(offset, _)| span.block_around(base + offset as usize)));
        Ok(())
    }

    pub(super) fn expect_no_root(&mut self, shared: &Shared, address: usize, room: usize) -> Result<()> {
        let Some(offset) = shared.window.offset_of(address) else { return Ok(()) };
        if let Some(span) = shared.table.get((offset / PAGE) as usize).and_then(|slot| slot.get())
            && span.has_root(0).is_none()
        {
            self.mark_roots(shared, span)?;
        }
        match within(self.root_places(shared)?, offset..offset + room as u64).next() {
            Some((_, page)) if !Mutant::RootBlockFreed.is_on() => {
                Err(HeapError::RootBlock { address, name: read(&shared.window, page)?.name })
            }
            _ => Ok(()),
        }
    }
}

impl Allocator {
    pub(super) fn expect_no_root(&self, address: usize, room: usize) -> Result<()> {
        let known = self.span_at(address).and_then(|span| span.has_root(span.block(address)?));
        match known {
            Some(false) => Ok(()),
            _ => self.shared.lock().expect_no_root(&self.shared, address, room),
        }
    }

    pub(super) fn expect_free(&self, address: usize) -> Result<()> {
        if !self.shared.window.writable {
            return Err(HeapError::ReadOnly);
        }
        let (_, start, room) = {
            let _inner = self.shared.lock();
            self.block_at(address)?
        };
        self.expect_no_root(start, room)
    }
}
