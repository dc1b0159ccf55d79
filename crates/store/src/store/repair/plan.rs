use super::scan::{self, Scanned};
use super::{Repair, RepairOptions};
use crate::error::{Part, Result};
use crate::format::entry::{Entry, SIZE};
use crate::format::root::TreeId;
use crate::format::{DATA, PAGE};
use crate::medium::read_struct;
use crate::store::check::{Claim, Object, Owner, Survey, gaps};
use std::collections::{BTreeSet, HashMap};

pub(super) fn entries_are_known(survey: &Survey) -> bool {
    let complete = |tree: TreeId| survey.trees[tree as usize].complete;
    survey.root.is_some() && (complete(TreeId::Names) || complete(TreeId::Ids))
}

#[derive(Clone, Copy)]
pub(super) struct Kept {
    pub offset: u64,
    pub hash: Option<u64>,
    pub id: Option<(u64, u64)>,
}

pub(super) struct Plan {
    /// Ascending.
    pub objects: Vec<Object>,
    pub kept: Vec<Kept>,
    /// Pages with slots, ascending.
    pub slot_pages: BTreeSet<u64>,
    pub keeps_free_slots: bool,
    /// Sorted.
    pub pages: Vec<Claim>,
    /// Sorted.
    pub addresses: Vec<Claim>,
}

impl Plan {
    pub fn uses(&self, slot: u64) -> bool {
        self.objects.binary_search_by_key(&slot, |object| object.offset).is_ok()
            || self.kept.iter().any(|kept| kept.offset == slot)
    }
}

impl Repair {
    /// `None`: free space is uncertain.
    pub(super) fn plan(
        &mut self,
        survey: &Survey,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Option<Plan>> {
        let known = entries_are_known(survey);
        let Scanned { mut objects, mut damaged, mut unreadable } = match known {
            true => Scanned::default(),
            false => scan::entries(&*self.medium, self.seed, self.len, progress)?,
        };
        objects.extend(&survey.objects);
        for &offset in &survey.strays {
            objects.push(Object::of(offset, &read_struct(&*self.medium, offset)?, self.seed));
        }
        objects.sort_unstable_by_key(|object| object.offset);
        objects.dedup_by_key(|object| object.offset);
        damaged.extend(&survey.damaged);
        damaged.sort_unstable();
        damaged.dedup();
        let claims = objects.iter().flat_map(Object::claims);
        let mut extents: Vec<_> = claims.map(|claim| (claim.first, claim.end - claim.first)).collect();
        extents.sort_unstable();
        let is_data = |page: u64| {
            let before = extents.partition_point(|(first, _)| *first <= page);
            before > 0 && page - extents[before - 1].0 < extents[before - 1].1
        };
        damaged.retain(|slot| {
            let is_intact = objects.binary_search_by_key(slot, |object| object.offset).is_ok();
            !is_intact && !is_data(slot / PAGE)
        });

        unreadable.retain(|page| !is_data(page / PAGE));

        let RepairOptions { drop_damaged, .. } = self.options;
        for page in &unreadable {
            if drop_damaged {
                self.did(Part::Entry, *page, None, "a page that cannot be read was dropped");
                self.losing("objects with entries in it, if any");
            } else {
                self.leave(Part::Entry, *page, "a page that cannot be read, and may have entries of objects");
            }
        }
        if !unreadable.is_empty() && !drop_damaged {
            return Ok(None);
        }
        let mut slot_pages: BTreeSet<u64> =
            objects.iter().map(|object| object.offset).chain(damaged.iter().copied()).map(page_of).collect();
        let mut kept = Vec::new();
        let mut dropped = 0;
        if drop_damaged {
            dropped = damaged.len();
            damaged.drain(..).for_each(|offset| self.drop_entry(offset));
            dropped += self.drop_doubled(&mut objects);
        } else {
            kept = leads_to(survey, &damaged);
        }
        let keeps_free_slots = known && survey.slots_sound && dropped == 0;
        if keeps_free_slots {
            slot_pages.extend(survey.free_slots.iter().copied().map(page_of));
        }
        let mut pages: Vec<_> = objects.iter().flat_map(Object::claims).collect();
        pages.extend(slot_pages.iter().map(|page| Claim::new(page / PAGE, 1, Owner::Slots)));
        pages.extend(survey.lanes.iter().map(|lane| {
            let (offset, len) = (lane.directory.offset.get(), lane.directory.len.get());
            Claim::new(offset / PAGE, len / PAGE, Owner::Lane(lane.index))
        }));
        let mut addresses: Vec<_> = objects.iter().filter_map(Object::addresses).collect();
        pages.sort_unstable();
        addresses.sort_unstable();
        let mut plan = Plan { objects, kept, slot_pages, keeps_free_slots, pages, addresses };
        if !plan.kept.is_empty() && !self.spare_damaged(survey, &mut plan)? {
            return Ok(None);
        }
        Ok(Some(plan))
    }

    fn drop_entry(&mut self, offset: u64) {
        let entry = read_struct::<Entry>(&*self.medium, offset).ok();
        let name = entry.map(|entry| entry.name()).filter(|name| !name.is_empty());
        let bytes = entry.map_or_else(|| "unknown".into(), |entry| format!("perhaps {} bytes", entry.size));
        self.did(Part::Entry, offset, name, "the damaged entry was dropped");
        self.losing(format!("the object, if there was one: {bytes}, whose place is no longer known"));
    }

    fn drop_doubled(&mut self, objects: &mut Vec<Object>) -> usize {
        let mut by_worth: Vec<_> = objects.clone();
        by_worth.sort_unstable_by_key(|object| (object.binding, object.created, object.offset));
        let mut stays: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
        let mut goes = BTreeSet::new();
        for object in by_worth.iter().rev() {
            let end = object.primary + object.pages;
            let overlaps = stays.range(..end).next_back().is_some_and(|(_, other)| *other > object.primary);
            if overlaps {
                goes.insert(object.offset);
            } else {
                stays.insert(object.primary, end);
            }
        }
        for object in objects.iter().filter(|object| goes.contains(&object.offset)) {
            let name = read_struct::<Entry>(&*self.medium, object.offset).ok().map(|entry| entry.name());
            self.did(
                Part::Entry,
                object.offset,
                name,
                "dropped: an object attached later has the same pages",
            );
            self.losing(format!("the object: {} pages from page {}", object.pages, object.primary));
        }
        objects.retain(|object| !goes.contains(&object.offset));
        goes.len()
    }

    fn spare_damaged(&mut self, survey: &Survey, plan: &mut Plan) -> Result<bool> {
        let complete = |tree: TreeId| survey.trees[tree as usize].complete;
        if complete(TreeId::FreeByPage) && complete(TreeId::FreeByAddress) {
            let free = |tree: TreeId| {
                let slots = survey.trees[tree as usize].slots.iter();
                slots.map(|((start, _), len)| Claim::new(*start, *len, Owner::Free))
            };
            let mut known = plan.pages.clone();
            known.extend(free(TreeId::FreeByPage));
            known.extend(survey.table_pages());
            add_gaps(&mut plan.pages, known, DATA / PAGE, self.len / PAGE);
            let mut known = plan.addresses.clone();
            known.extend(free(TreeId::FreeByAddress));
            let (from, len) = survey.window;
            add_gaps(&mut plan.addresses, known, from, from + len);
            return Ok(true);
        }
        for kept in &plan.kept {
            let Ok(raw) = read_struct::<Entry>(&*self.medium, kept.offset) else { return Ok(false) };
            let (first, pages) = (raw.primary.get(), raw.pages.get());
            let end = first.saturating_add(pages);
            let plausible = raw.own_offset.get() == kept.offset
                && (1..=self.len / PAGE).contains(&pages)
                && raw.has_pages_for_size()
                && first >= DATA / PAGE
                && end <= self.len / PAGE
                && !plan.pages.iter().any(|claim| claim.first < end && first < claim.end);
            if !plausible {
                return Ok(false);
            }
            plan.pages.push(Claim::new(first, pages, Owner::Object(kept.offset)));
            plan.addresses.push(Claim::new(
                raw.address.get(),
                raw.reserved.get(),
                Owner::Object(kept.offset),
            ));
        }
        plan.pages.sort_unstable();
        plan.addresses.sort_unstable();
        Ok(true)
    }
}

fn page_of(slot: u64) -> u64 {
    slot / PAGE * PAGE
}

fn add_gaps(claims: &mut Vec<Claim>, mut known: Vec<Claim>, from: u64, to: u64) {
    known.sort_unstable();
    let open = gaps(&known, from, to);
    claims.extend(open.into_iter().map(|(first, end)| Claim { first, end, owner: Owner::Slots }));
    claims.sort_unstable();
}

fn leads_to(survey: &Survey, damaged: &[u64]) -> Vec<Kept> {
    let mut kept: HashMap<u64, Kept> =
        damaged.iter().map(|offset| (*offset, Kept { offset: *offset, hash: None, id: None })).collect();
    for ((hash, low), offset) in &survey.trees[TreeId::Names as usize].slots {
        if let Some(kept) = kept.get_mut(offset).filter(|_| low == offset) {
            kept.hash = Some(*hash);
        }
    }
    for (id, offset) in &survey.trees[TreeId::Ids as usize].slots {
        if let Some(kept) = kept.get_mut(offset) {
            kept.id = Some(*id);
        }
    }
    let mut kept: Vec<_> = kept.into_values().collect();
    kept.sort_unstable_by_key(|kept| kept.offset);
    kept
}

const _: () = assert!(PAGE.is_multiple_of(SIZE));

pub(super) fn next_binding(survey: &Survey, objects: &[Object]) -> u64 {
    let bindings = objects.iter().map(|object| object.binding);
    let waiting = survey.lanes.iter().map(|lane| lane.newest);
    let since = survey.lanes.iter().map(|lane| lane.directory.since.get());
    bindings.chain(waiting).map(|binding| binding.saturating_add(1)).chain(since).max().unwrap_or(1).max(1)
}
