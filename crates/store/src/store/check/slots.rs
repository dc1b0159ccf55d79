//! The lists of free table pages and entry slots; a slot is either used or free.

use super::space::{Claim, Owner};
use super::{Cure, Found, Severity, Survey};
use crate::error::Part;
use crate::format::entry::{Entry, FREE_MAGIC, SIZE};
use crate::format::{PAGE, TABLE_ROOT};
use std::collections::HashSet;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U64;

pub(in crate::store) fn is_clean(slot: &Entry, offset: u64) -> bool {
    let mut rest = *slot;
    rest.magic = 0.into();
    rest.own_offset = 0.into();
    rest.next_free = 0.into();
    slot.magic.get() == FREE_MAGIC
        && slot.own_offset.get() == offset
        && rest.as_bytes().iter().all(|byte| *byte == 0)
}

impl Survey {
    pub(super) fn read_free_pages(&mut self, met: &mut HashSet<u64>) {
        let Some(root) = self.root else { return };
        let mut page = root.free_page.get();
        let mut count = 0_u64;
        while page != 0 {
            let fault = if !self.is_table_page(page) {
                Some("the list of free table pages leads here, where none can be")
            } else if !met.insert(page) {
                Some("this page is twice in the list of free table pages, or also a node")
            } else {
                None
            };
            if let Some(what) = fault {
                self.find(Severity::Error, Part::FreeSpace, page, Cure::Rebuild, what);
                break;
            }
            self.free_pages.push(page);
            self.claims.push(Claim::new(page / PAGE, 1, Owner::FreeTablePage));
            count += 1;
            let Some(next) = self.read::<U64>(Part::FreeSpace, page) else { break };
            page = next.get();
        }
        if page == 0 && count != root.free_page_count.get() {
            let what =
                format!("{count} free table pages are listed, the root counts {}", root.free_page_count);
            self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
        }
        let (next, end) = (root.chunk_next.get(), root.chunk_end.get());
        if next < end && self.is_table_page(next) && end.is_multiple_of(PAGE) {
            self.claims.push(Claim::new(next / PAGE, (end - next) / PAGE, Owner::Chunk));
        }
    }

    pub(super) fn read_free_slots(&mut self) {
        let Some(root) = self.root else {
            self.slots_sound = false;
            return;
        };
        let mut met = HashSet::new();
        let mut offset = root.free_slot.get();
        while offset != 0 {
            let fault = if !self.is_table_page(offset / PAGE * PAGE) || !offset.is_multiple_of(SIZE) {
                Some("the list of free slots leads here, where none can be")
            } else if !met.insert(offset) {
                Some("this slot is twice in the list of free slots")
            } else {
                None
            };
            let slot = match fault {
                Some(_) => None,
                None => self.read::<Entry>(Part::Entry, offset),
            };
            let fault = fault.or(match slot {
                Some(slot) if slot.magic.get() == FREE_MAGIC && slot.own_offset.get() == offset => None,
                Some(_) => Some("the list of free slots leads here, and it is none"),
                None => Some("the list of free slots leads here, and it cannot be read"),
            });
            let Some(slot) = slot.filter(|_| fault.is_none()) else {
                let what = fault.unwrap_or_default();
                self.find(Severity::Error, Part::Entry, offset, Cure::Rebuild, what);
                self.slots_sound = false;
                break;
            };
            if !is_clean(&slot, offset) {
                let what = "this free slot holds stray bytes, which do no harm";
                self.find(Severity::Warning, Part::Entry, offset, Cure::None, what);
            }
            self.free_slots.push(offset);
            offset = slot.next_free.get();
        }
        self.free_slots.sort_unstable();
    }

    pub(super) fn judge_slots(&mut self) {
        let objects = match &mut self.brief {
            Some(brief) => std::mem::take(&mut brief.offsets),
            None => self.objects.iter().map(|object| object.offset).collect(),
        };
        let mut slots: Vec<(u64, bool)> = objects
            .into_iter()
            .chain(self.damaged.iter().copied())
            .map(|offset| (offset, true))
            .chain(self.free_slots.iter().map(|offset| (*offset, false)))
            .collect();
        slots.sort_unstable();
        for pair in slots.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            self.slots_sound = false;
            let found = Found(Severity::Error, Part::Entry, pair[0].0, Cure::Rebuild);
            self.find_of(pair[0].0, found, "its slot is in the list of free ones");
        }
        slots.dedup_by_key(|slot| slot.0);
        let mut rest = &slots[..];
        let mut found = Vec::new();
        while let Some(&(first, _)) = rest.first() {
            let page = first / PAGE * PAGE;
            let here = rest.partition_point(|(offset, _)| offset / PAGE == first / PAGE);
            let (slots, later) = rest.split_at(here);
            rest = later;
            self.claims.push(Claim::new(page / PAGE, 1, Owner::Slots));
            let known = |offset: &u64| slots.iter().any(|(known, _)| known == offset);
            found.extend((0..PAGE / SIZE).map(|index| page + index * SIZE).filter(|offset| !known(offset)));
        }
        if self.root.is_some() && self.slots_sound {
            found.into_iter().for_each(|offset| self.judge_stray(offset));
        }
        self.damaged.sort_unstable();
        self.damaged.dedup();
    }

    fn judge_stray(&mut self, offset: u64) {
        let Some(slot) = self.read::<Entry>(Part::Entry, offset) else {
            self.damaged.push(offset);
            self.slots_sound = false;
            return;
        };
        if slot.verify(self.seed, offset, self.len) {
            let found = Found(Severity::Error, Part::Entry, offset, Cure::Rebuild);
            self.find_of(offset, found, "no tree leads to it");
            self.strays.push(offset);
        } else if is_clean(&slot, offset) {
            let what = "a free slot that is not in the list";
            self.find(Severity::Error, Part::Entry, offset, Cure::Rebuild, what);
        } else {
            let found = Found(Severity::Error, Part::Entry, offset, Cure::Drop);
            self.find_of(offset, found, "a slot that is neither an intact entry nor a free one");
            self.damaged.push(offset);
        }
        self.slots_sound = false;
    }
}
