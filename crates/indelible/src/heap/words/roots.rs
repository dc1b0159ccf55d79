//! Roots of a transactional heap. A transaction that frees a block reads the roots if the hints
//! permit one there. A new root is added to the hints before its transaction commits.

use super::{WordHeap, Words};
use crate::error::Cause;
use crate::heap::error::{HeapError, Result};
use crate::heap::layout::{
    Header, INLINE_ROOTS, MAX_PAGES, PAGE, PAGE_ROOTS, RootIndex, RootRecord, RootSlot,
};
use crate::heap::root::{Root, TypeInfo};
use crate::heap::root_record::read;
use crate::heap::roots;
use crate::heap::state::Shared;
use indelible_store::Mutant;
use std::mem::{offset_of, size_of};
use std::ops::Range;

impl WordHeap {
    pub(in crate::heap) fn read<R>(
        &self,
        words: &mut impl Words,
        read: impl Fn(&Shared) -> Result<R>,
    ) -> Result<R, Cause> {
        self.prepare(words, |window| read(&Shared::of_copies(window)?))
    }

    pub(crate) fn root(
        &self,
        words: &mut impl Words,
        name: &str,
        ty: &TypeInfo<'_>,
    ) -> Result<Option<Root>, Cause> {
        self.prepare(words, |window| match roots::find(&Shared::of_copies(window)?, name) {
            Err(HeapError::RootMissing { .. }) => Ok(None),
            found => found?.expect(ty).map(Some),
        })
    }

    pub(crate) fn create_root(
        &self,
        words: &mut impl Words,
        name: &str,
        (address, size): (u64, u64),
        ty: &TypeInfo<'_>,
    ) -> Result<(), Cause> {
        let root = Root {
            name: name.to_owned(),
            address: address as usize,
            size,
            type_name: ty.name.to_owned(),
            fingerprint: ty.fingerprint,
            layout: ty.layout.to_owned(),
        };
        if let Some(offset) = self.offset_of(address) {
            self.hints.add_root(offset);
        }
        self.with_room(words, |heap, words| {
            heap.prepare(words, |window| roots::create(&Shared::of_copies(window)?, &root))
        })
    }

    pub(super) fn expect_no_root(&self, words: &mut impl Words, block: Range<u64>) -> Result<(), Cause> {
        let looked = match self.hints.may_have_root(block.clone()) {
            Some(false) => return Ok(()),
            looked => looked.is_some(),
        };
        let places = places(words)?;
        if !looked {
            let offsets: Vec<u64> = places.iter().map(|(_, offset)| *offset).collect();
            self.hints.add_roots(&offsets);
        }
        match places.into_iter().find(|(_, offset)| block.contains(offset)) {
            Some((page, _)) if !Mutant::RootBlockFreed.is_on() => {
                let name = self.prepare(words, |window| read(&window, page))?.name;
                Err(HeapError::RootBlock { address: self.address_of(block.start) as usize, name }.into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn remove_root(&self, words: &mut impl Words, name: &str) -> Result<Root, Cause> {
        self.prepare(words, |window| roots::remove(&Shared::of_copies(window)?, name))
    }
}

fn places(words: &mut impl Words) -> Result<Vec<(u64, u64)>, Cause> {
    let mut found = Vec::new();
    let mut left = words.load(offset_of!(Header, pages) as u64)?;
    let mut next = words.load(offset_of!(Header, roots) as u64)?;
    let mut slots = (offset_of!(Header, slots) as u64, INLINE_ROOTS as u64);
    loop {
        let (first, count) = slots;
        for index in 0..count {
            let slot = first + index * size_of::<RootSlot>() as u64;
            let page = words.load(slot + offset_of!(RootSlot, page) as u64)?;
            if page != 0 {
                let record = page.min(MAX_PAGES) * PAGE + offset_of!(RootRecord, offset) as u64;
                found.push((page, words.load(record)?));
            }
        }
        if next == 0 {
            return Ok(found);
        }
        left = left.saturating_sub(1);
        if left == 0 {
            return Err(HeapError::Damaged { offset: 0, what: "the pages of root slots form a ring" }.into());
        }
        let index = next.min(MAX_PAGES) * PAGE;
        slots = (index + offset_of!(RootIndex, slots) as u64, PAGE_ROOTS as u64);
        next = words.load(index + offset_of!(RootIndex, next) as u64)?;
    }
}
