//! Ownership of pages and addresses: each has one owner.

use super::{Cure, Found, Severity, Survey};
use crate::error::Part;
use crate::format::root::TreeId;
use crate::format::{DATA, PAGE, TABLE_ROOT};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) enum Owner {
    Object(u64),
    Lane(u32),
    Node(TreeId),
    Slots,
    FreeTablePage,
    Chunk,
    Free,
}

pub(super) fn title(tree: TreeId) -> &'static str {
    match tree {
        TreeId::Names => "tree of names",
        TreeId::Ids => "tree of IDs",
        TreeId::FreeByPage => "tree of free space by position",
        TreeId::FreeBySize => "tree of free space by size",
        TreeId::FreeByAddress => "tree of free addresses by position",
        TreeId::FreeByReach => "tree of free addresses by size",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Claim {
    pub first: u64,
    pub end: u64,
    pub owner: Owner,
}

impl Claim {
    pub(in crate::store) fn new(first: u64, len: u64, owner: Owner) -> Claim {
        Claim { first, end: first.saturating_add(len), owner }
    }
}

enum Fault {
    Gap(u64, u64),
    Overlap(Claim, Claim),
}

fn tile(claims: &[Claim], from: u64, to: u64, mut report: impl FnMut(Fault)) {
    let mut at = from;
    let mut last: Option<Claim> = None;
    for claim in claims {
        let first = claim.first.min(to);
        if first > at {
            report(Fault::Gap(at, first));
        }
        if let Some(before) = last.filter(|before| claim.first < before.end) {
            report(Fault::Overlap(before, *claim));
        }
        at = at.max(claim.end);
        if last.is_none_or(|before| claim.end > before.end) {
            last = Some(*claim);
        }
    }
    if at < to {
        report(Fault::Gap(at, to));
    }
}

pub(in crate::store) fn gaps(claims: &[Claim], from: u64, to: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    tile(claims, from, to, |fault| {
        if let Fault::Gap(first, end) = fault {
            found.push((first, end));
        }
    });
    found
}

pub(in crate::store) fn overlapping(mut claims: Vec<Claim>) -> Vec<Owner> {
    claims.sort_unstable();
    claims.dedup();
    let mut found = Vec::new();
    tile(&claims, 0, 0, |fault| {
        if let Fault::Overlap(a, b) = fault {
            found.extend([a.owner, b.owner]);
        }
    });
    found
}

impl Survey {
    fn describe(&self, owner: Owner) -> String {
        match owner {
            Owner::Object(entry) => format!("object {:?}", self.name_at(entry)),
            Owner::Lane(index) => format!("lane {index}"),
            Owner::Node(tree) => format!("the {}", title(tree)),
            Owner::Slots => "the table's entries".into(),
            Owner::FreeTablePage => "the table's free pages".into(),
            Owner::Chunk => "the table's chunk".into(),
            Owner::Free => "free space".into(),
        }
    }

    pub(super) fn judge_space(&mut self) {
        let Some(root) = self.root else { return };
        let free = self.free_extents(TreeId::FreeByPage, TreeId::FreeBySize);
        let (from, to) = (DATA / PAGE, self.len / PAGE);
        let pages = free.iter().map(|(_, len)| *len).fold(0, u64::saturating_add);
        if self.trees[TreeId::FreeByPage as usize].complete && pages != root.free_pages.get() {
            let what = format!("{pages} pages are free, the root counts {}", root.free_pages);
            self.find(Severity::Error, Part::FreeSpace, TABLE_ROOT, Cure::Rebuild, what);
        }
        self.claims.extend(free.iter().map(|(start, len)| Claim::new(*start, *len, Owner::Free)));
        let mut claims = std::mem::take(&mut self.claims);
        claims.sort_unstable();
        let virgin = root.virgin.get().div_ceil(PAGE);
        for claim in &claims {
            if claim.first < from || claim.end > to {
                let what = format!("{} reaches beyond the data region", self.describe(claim.owner));
                self.find(
                    Severity::Error,
                    Part::FreeSpace,
                    claim.first.saturating_mul(PAGE),
                    Cure::Rebuild,
                    what,
                );
            } else if claim.end > virgin && !matches!(claim.owner, Owner::Free | Owner::Chunk) {
                let what = format!("{} is in space that counts as never used", self.describe(claim.owner));
                self.find(Severity::Error, Part::Root, TABLE_ROOT, Cure::Rebuild, what);
            }
        }
        if let Some(brief) = &mut self.brief {
            return brief.judge_pages(&claims, (from, to));
        }
        let mut faults = Vec::new();
        tile(&claims, from, to, |fault| faults.push(fault));
        for fault in faults {
            self.report_page(fault);
        }
        self.claims = claims;
    }

    fn report_page(&mut self, fault: Fault) {
        match fault {
            // A damaged structure makes no claim on its pages.
            Fault::Gap(..) if !self.owners_are_known() => {}
            Fault::Gap(first, end) => {
                let cure = if self.damaged.is_empty() { Cure::Rebuild } else { Cure::Drop };
                let what = format!("pages {first} to {} have no owner", end - 1);
                self.find(Severity::Error, Part::FreeSpace, first * PAGE, cure, what);
            }
            Fault::Overlap(a, b) => {
                let (first, last) = (b.first, a.end.min(b.end).saturating_sub(1));
                let (one, other) = (self.describe(a.owner), self.describe(b.owner));
                let what = format!("pages {first} to {last} belong to {one} and to {other}");
                // Between objects a person must decide.
                let is_data = |owner| matches!(owner, Owner::Object(_) | Owner::Lane(_) | Owner::Slots);
                let cure = if is_data(a.owner) && is_data(b.owner) { Cure::Drop } else { Cure::Rebuild };
                let entry = [a.owner, b.owner].into_iter().find_map(|owner| match owner {
                    Owner::Object(entry) => Some(entry),
                    _ => None,
                });
                let found = Found(Severity::Error, Part::FreeSpace, first.saturating_mul(PAGE), cure);
                match entry {
                    Some(entry) => self.find_of(entry, found, what),
                    None => self.report.add(found, None, what),
                }
            }
        }
    }

    pub(super) fn judge_addresses(&mut self) {
        let (from, len) = self.window;
        let to = from.saturating_add(len);
        let mut claims: Vec<_> = match self.brief {
            Some(_) => Vec::new(),
            None => self.objects.iter().filter_map(|object| object.addresses()).collect(),
        };
        let free = self.free_extents(TreeId::FreeByAddress, TreeId::FreeByReach);
        claims.extend(free.iter().map(|(start, len)| Claim::new(*start, *len, Owner::Free)));
        claims.sort_unstable();
        for claim in claims.iter().filter(|claim| claim.first < from || claim.end > to) {
            let what = format!("addresses of {} lie outside the pool's window", self.describe(claim.owner));
            let cure = if claim.owner == Owner::Free { Cure::Rebuild } else { Cure::Manual };
            self.find(Severity::Error, Part::FreeSpace, TABLE_ROOT, cure, what);
        }
        if let Some(brief) = &mut self.brief {
            return brief.judge_addresses(&claims, (from, to));
        }
        let mut faults = Vec::new();
        tile(&claims, from, to, |fault| faults.push(fault));
        for fault in faults {
            let (what, cure) = match fault {
                Fault::Gap(..) if self.root.is_none() || !self.trees.iter().all(|tree| tree.complete) => {
                    continue;
                }
                Fault::Gap(first, end) => {
                    let cure = if self.damaged.is_empty() { Cure::Rebuild } else { Cure::Drop };
                    (format!("addresses {first:#x} to {end:#x} have no owner"), cure)
                }
                Fault::Overlap(a, b) => {
                    let (one, other) = (self.describe(a.owner), self.describe(b.owner));
                    let both = a.owner != Owner::Free && b.owner != Owner::Free;
                    let what = format!("addresses from {:#x} belong to {one} and to {other}", b.first);
                    (what, if both { Cure::Manual } else { Cure::Rebuild })
                }
            };
            self.find(Severity::Error, Part::FreeSpace, TABLE_ROOT, cure, what);
        }
    }

    fn free_extents(&mut self, by_start: TreeId, by_size: TreeId) -> Vec<(u64, u64)> {
        let (starts, sizes) = (&self.trees[by_start as usize], &self.trees[by_size as usize]);
        let extents: Vec<_> = starts.slots.iter().map(|((start, _), len)| (*start, *len)).collect();
        let mut other: Vec<_> = sizes.slots.iter().map(|((len, start), _)| (*start, *len)).collect();
        other.sort_unstable();
        let odd = starts.slots.iter().any(|((_, low), len)| *low != 0 || *len == 0)
            || sizes.slots.iter().any(|(_, value)| *value != 0);
        let differ = starts.complete && sizes.complete && extents != other;
        let touch = extents.windows(2).any(|pair| pair[0].0.saturating_add(pair[0].1) == pair[1].0);
        let (one, two) = (title(by_start), title(by_size));
        if differ || odd {
            let what = format!("the {one} and the {two} contradict each other");
            self.find(Severity::Error, Part::FreeSpace, TABLE_ROOT, Cure::Rebuild, what);
        }
        if touch {
            let what = format!("the {one} has neighbours that should be one");
            self.find(Severity::Error, Part::FreeSpace, TABLE_ROOT, Cure::Rebuild, what);
        }
        extents
    }
}
